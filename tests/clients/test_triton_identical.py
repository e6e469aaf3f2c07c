"""Every data type in every form gives, through the proxy, the same bytes as from Triton itself."""

import http.client
import json
from collections.abc import Iterator
from dataclasses import dataclass

import grpc
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tritonclient.grpc import service_pb2, service_pb2_grpc

from tests.fakes.triton_models import DATATYPES
from tests.fakes.triton_program import TritonProgram
from tests.fakes.triton_server import TritonServer

SIZES = {"BOOL": 1, "UINT8": 1, "INT8": 1, "UINT16": 2, "INT16": 2, "FP16": 2, "BF16": 2, "FP32": 4} | {
    f"{kind}{bits}": bits // 8 for kind in ("UINT", "INT", "FP") for bits in (32, 64)
}
IN_JSON = [datatype for datatype in DATATYPES if datatype not in ("FP16", "BF16")]
"""The others have no form in JSON."""

a_few = settings(
    max_examples=4,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@dataclass
class Place:
    """Where a server, or the proxy before it, listens."""

    http: http.client.HTTPConnection
    grpc: service_pb2_grpc.GRPCInferenceServiceStub

    def posted(self, model: str, body: bytes, **fields: str) -> tuple[int, str | None, bytes]:
        self.http.request("POST", f"/v2/models/{model}/infer", body, fields)
        answer = self.http.getresponse()
        return answer.status, answer.getheader("Inference-Header-Content-Length"), answer.read()

    def called(self, request: service_pb2.ModelInferRequest) -> bytes:
        return self.grpc.ModelInfer(request, timeout=10).SerializeToString(deterministic=True)


@pytest.fixture(scope="module")
def places(triton: TritonServer, program: TritonProgram) -> Iterator[tuple[Place, Place]]:
    """The proxy, and Triton itself."""
    with (
        grpc.insecure_channel(f"127.0.0.1:{program.grpc}") as through,
        grpc.insecure_channel(triton.target) as direct,
    ):
        yield (
            Place(
                http.client.HTTPConnection("127.0.0.1", program.data, timeout=10),
                service_pb2_grpc.GRPCInferenceServiceStub(through),
            ),
            Place(
                http.client.HTTPConnection("127.0.0.1", triton.port, timeout=10),
                service_pb2_grpc.GRPCInferenceServiceStub(direct),
            ),
        )


def model_of(datatype: str) -> str:
    return f"identity_{datatype.lower()}_flat"


shapes = st.tuples(st.integers(0, 6), st.integers(0, 6))


def raw_values(datatype: str, count: int, seed: int) -> bytes:
    """Values of any bits, as they lie in a binary tensor."""
    rng = np.random.default_rng(seed)
    if datatype == "BYTES":
        texts = [rng.bytes(rng.integers(0, 9)) for _ in range(count)]
        return b"".join(len(text).to_bytes(4, "little") + text for text in texts)
    if datatype == "BOOL":
        return rng.integers(0, 2, count, np.uint8).tobytes()
    return rng.bytes(count * SIZES[datatype])


def json_values(datatype: str, count: int, seed: int) -> list:
    """Values as they stand in JSON."""
    rng = np.random.default_rng(seed)
    if datatype == "BYTES":
        return ["".join(chr(each) for each in rng.integers(0x20, 0x2FF, 4)) for _ in range(count)]
    if datatype == "BOOL":
        return rng.integers(0, 2, count).astype(bool).tolist()
    if datatype.startswith("FP"):
        return rng.normal(0, 1e3, count).tolist()
    least, most = np.iinfo(datatype.lower()).min, np.iinfo(datatype.lower()).max
    return rng.integers(least, most, count, datatype.lower(), endpoint=True).tolist()


@pytest.mark.parametrize("datatype", DATATYPES)
def test_binary_tensors_over_http_are_the_same(triton, places, datatype):
    @a_few
    @given(shape=shapes, seed=st.integers(0, 2**32 - 1))
    def prove(shape: tuple[int, int], seed: int) -> None:
        raw = raw_values(datatype, shape[0] * shape[1], seed)
        tensor = {
            "name": "INPUT",
            "shape": shape,
            "datatype": datatype,
            "parameters": {"binary_data_size": len(raw)},
        }
        head = json.dumps({"inputs": [tensor], "parameters": {"binary_data_output": True}}).encode()
        length = {"Inference-Header-Content-Length": str(len(head))}
        ours, its = (place.posted(model, head + raw, **length) for place in places)
        assert ours == its
        assert ours[0] == 200
        assert ours[2].endswith(raw)

    model = model_of(datatype)
    triton.load(model)
    prove()


@pytest.mark.parametrize("datatype", IN_JSON)
def test_tensors_in_json_are_the_same(triton, places, datatype):
    @a_few
    @given(shape=shapes, seed=st.integers(0, 2**32 - 1))
    def prove(shape: tuple[int, int], seed: int) -> None:
        values = json_values(datatype, shape[0] * shape[1], seed)
        tensor = {"name": "INPUT", "shape": shape, "datatype": datatype, "data": values}
        body = json.dumps({"inputs": [tensor]}).encode()
        ours, its = (place.posted(model, body) for place in places)
        assert ours == its
        assert ours[0] == 200

    model = model_of(datatype)
    triton.load(model)
    prove()


@pytest.mark.parametrize("datatype", DATATYPES)
def test_tensors_over_grpc_are_the_same(triton, places, datatype):
    @a_few
    @given(shape=shapes, seed=st.integers(0, 2**32 - 1))
    def prove(shape: tuple[int, int], seed: int) -> None:
        raw = raw_values(datatype, shape[0] * shape[1], seed)
        tensor = service_pb2.ModelInferRequest.InferInputTensor(name="INPUT", datatype=datatype, shape=shape)
        request = service_pb2.ModelInferRequest(
            model_name=model, id="7", inputs=[tensor], raw_input_contents=[raw]
        )
        ours, its = (place.called(request) for place in places)
        assert ours == its
        assert service_pb2.ModelInferResponse.FromString(ours).raw_output_contents[0] == raw

    model = model_of(datatype)
    triton.load(model)
    prove()
