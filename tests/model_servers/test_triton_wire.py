"""What gRPC carries and what JSON says are the same messages; Triton's client library is the judge."""

import inspect

import msgspec
import pytest
from google.protobuf import json_format
from google.protobuf.message import DecodeError
from tritonclient.grpc import service_pb2

from autoscaler.domain.model import SizeTime
from autoscaler.model_servers.triton import messages, wire
from autoscaler.model_servers.triton.described import described, times_by_size

READ = {
    name: kind
    for name, kind in inspect.getmembers(messages, inspect.isclass)
    if issubclass(kind, messages.Message) and name in wire.MESSAGES
}

NESTED = {
    "TensorMetadata": service_pb2.ModelMetadataResponse.TensorMetadata,
    "ModelIndex": service_pb2.RepositoryIndexResponse.ModelIndex,
}

SCHEDULING = ("dynamic_batching", "sequence_batching", "ensemble_scheduling")

CONFIG = """{
  "name": "m", "max_batch_size": 8, "platform": "onnxruntime_onnx", "backend": "onnxruntime",
  "input": [{"name": "a", "data_type": "TYPE_STRING", "dims": ["-1", "3"], "allow_ragged_batch": true},
            {"name": "b", "data_type": "TYPE_BF16", "dims": ["1"], "optional": true}],
  "output": [{"name": "c", "data_type": "TYPE_FP32", "dims": ["2"]}, {"name": "d"}],
  "instance_group": [{"kind": "KIND_GPU", "count": 2, "gpus": [0, 1]}, {"count": 9, "passive": true}],
  "dynamic_batching": {"preferred_batch_size": [8, 4], "max_queue_delay_microseconds": "500",
                       "default_queue_policy": {"max_queue_size": 6}},
  "model_transaction_policy": {"decoupled": true}
}"""


@pytest.mark.parametrize("name", READ)
def test_whatever_is_read_is_on_the_wire_under_the_same_name_and_number(name):
    ours = {field.split()[0]: int(field.split()[1]) for field in wire.MESSAGES[name].split(", ") if field}
    assert set(READ[name].__struct_fields__) == set(ours)
    if name != "Empty":
        there = service_pb2 if hasattr(service_pb2, name) else service_pb2.model__config__pb2
        theirs = NESTED.get(name) or getattr(there, name)
        assert ours == {field: theirs.DESCRIPTOR.fields_by_name[field].number for field in ours}


def test_the_datatypes_have_their_numbers():
    theirs = service_pb2.model__config__pb2.DataType.items()
    assert list(enumerate(messages.DATATYPES.split())) == [(number, name) for name, number in theirs]


def over_grpc(answer, question, kind):
    return wire.read(answer.SerializeToString(), question, kind)


@pytest.mark.parametrize("config", [CONFIG, "{}", *(f'{{"{way}": {{}}}}' for way in SCHEDULING)])
def test_a_configuration_is_the_same_over_both(config):
    sent = service_pb2.ModelConfigResponse()
    json_format.Parse(config, sent.config)
    came = over_grpc(sent, messages.ModelConfigRequest("m"), messages.ModelConfigResponse)
    assert described(came.config, "1") == described(
        msgspec.json.decode(config, type=messages.ModelConfig, strict=False), "1"
    )
    for way in SCHEDULING:
        assert (getattr(came.config, way) is None) is (way not in config)


def test_a_type_that_is_newer_than_this_has_no_name():
    sent = service_pb2.ModelConfigResponse()
    sent.config.input.add(name="a", data_type=99, dims=[2])
    came = over_grpc(sent, messages.ModelConfigRequest("m"), messages.ModelConfigResponse)
    assert described(came.config, "").inputs[0].datatype == ""


def test_numbers_of_64_bits_come_whole():
    sent = service_pb2.ModelStatisticsResponse()
    row = sent.model_stats.add(name="m").batch_stats.add(batch_size=4)
    row.compute_infer.count, row.compute_infer.ns = 2**60, 2**63
    came = over_grpc(sent, messages.ModelStatisticsRequest("m"), messages.ModelStatisticsResponse)
    assert times_by_size(came) == (SizeTime(4, 2**60, 2**63 * 1e-9 / 2**60),)


@pytest.mark.parametrize(
    ("question", "theirs"),
    [
        (messages.ServerReadyRequest(), service_pb2.ServerReadyRequest()),
        (messages.ModelReadyRequest("m", "2"), service_pb2.ModelReadyRequest(name="m", version="2")),
        (messages.ModelConfigRequest("m"), service_pb2.ModelConfigRequest(name="m")),
        (
            messages.RepositoryModelLoadRequest("m"),
            service_pb2.RepositoryModelLoadRequest(model_name="m"),
        ),
    ],
)
def test_questions_are_written_as_the_library_writes_them(question, theirs):
    assert wire.written(question) == theirs.SerializeToString()
    assert wire.method_of(question).removeprefix("/inference.GRPCInferenceService/") + "Request" == (
        theirs.DESCRIPTOR.name
    )


def test_bytes_that_are_no_message_are_an_error():
    with pytest.raises(DecodeError):
        wire.read(b"\xff", messages.ServerReadyRequest(), messages.ReadyResponse)
