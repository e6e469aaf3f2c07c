"""Whatever comes, reading it ends in a request or in `NotMergeable`, never in anything else."""

import json
from contextlib import suppress

from hypothesis import given, settings
from hypothesis import strategies as st
from tritonclient.grpc import service_pb2

from autoscaler.kserve.grpc_form import read_grpc
from autoscaler.kserve.merge import merge, split
from autoscaler.kserve.read_answer import read_answer
from autoscaler.kserve.read_http import read_http
from autoscaler.kserve.tensor import NotMergeable

DATATYPES = ["BOOL", "INT8", "UINT64", "FP16", "FP32", "FP64", "BF16", "BYTES", "FP8", ""]

numbers = st.integers(-(2**70), 2**70) | st.floats() | st.booleans() | st.none() | st.text(max_size=3)
nested = st.recursive(numbers, lambda inner: st.lists(inner, max_size=3), max_leaves=8)
shapes = st.lists(st.integers(-3, 4) | st.sampled_from([2**31, 2**63, 2**70]), max_size=4) | nested
parameters = st.dictionaries(
    st.sampled_from(["binary_data_size", "binary_data", "classification", "priority", "sequence_id", "x"]),
    nested,
    max_size=2,
)


def of_fields(**fields: st.SearchStrategy) -> st.SearchStrategy:
    return st.fixed_dictionaries({}, optional=fields)


tensors = of_fields(
    name=st.text(max_size=2) | nested,
    shape=shapes,
    datatype=st.sampled_from(DATATYPES) | nested,
    data=nested,
    parameters=parameters,
)
bodies = of_fields(
    id=st.text(max_size=3) | nested,
    inputs=st.lists(tensors, max_size=2) | nested,
    outputs=st.lists(of_fields(name=st.text(max_size=2), parameters=parameters), max_size=2) | nested,
    parameters=parameters,
)


@given(body=bodies, tail=st.binary(max_size=9), has_length=st.booleans())
@settings(max_examples=500)
def test_http(body, tail, has_length):
    text = json.dumps(body).encode()
    with suppress(NotMergeable):
        read = read_http("m", "", text + tail, len(text) if has_length else None)
        assert hash(read.bucket()) == hash(read.bucket())
        merge([read, read])


@given(data=st.binary(max_size=60), length=st.none() | st.integers(-1, 70))
@settings(max_examples=300)
def test_bytes_over_http(data, length):
    with suppress(NotMergeable):
        read_http("m", "", data, length)


@given(
    datatype=st.sampled_from(DATATYPES),
    shape=st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(0, 3), max_size=3),
    raw=st.lists(st.binary(max_size=12), max_size=2),
    ints=st.lists(st.integers(-(2**31), 2**31 - 1), max_size=3),
    strings=st.lists(st.binary(max_size=3), max_size=3),
)
@settings(max_examples=300)
def test_messages(datatype, shape, raw, ints, strings):
    message = service_pb2.ModelInferRequest(model_name="m")
    one = message.inputs.add(name="x", datatype=datatype, shape=shape)
    one.contents.int_contents.extend(ints)
    one.contents.bytes_contents.extend(strings)
    if not ints and not strings:
        one.ClearField("contents")
    message.raw_input_contents.extend(raw)
    with suppress(NotMergeable):
        merge([read_grpc(message.SerializeToString())])


@given(data=st.binary(max_size=60))
@settings(max_examples=300)
def test_bytes_over_grpc(data):
    with suppress(NotMergeable):
        read_grpc(data)


@given(outputs=st.lists(tensors, max_size=2), tail=st.binary(max_size=9))
@settings(max_examples=300)
def test_answers(outputs, tail):
    text = json.dumps({"outputs": outputs}).encode()
    asked = json.dumps({"inputs": [{"name": "x", "shape": [1, 1], "datatype": "INT8", "data": [1]}]}).encode()
    request = read_http("m", "", asked, None)
    with suppress(NotMergeable):
        split(read_answer(text + tail, len(text)), [request, request])
