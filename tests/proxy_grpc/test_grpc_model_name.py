"""The name of the model is found in any message, as the server will find it, and nothing else is read."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tritonclient.grpc import service_pb2

from autoscaler.proxy.grpc.model_name import FIELDS_MAX, NotAMessage, text_field

tensors = st.lists(st.binary(max_size=300), max_size=5)


@given(name=st.text(max_size=40), version=st.text(max_size=5), raw=tensors, timeout=st.integers(0, 2**63 - 1))
def test_it_agrees_with_the_library_of_the_format(name, version, raw, timeout):
    message = service_pb2.ModelInferRequest(model_name=name, model_version=version, raw_input_contents=raw)
    message.parameters["timeout"].int64_param = timeout
    message.inputs.add(name="x", datatype="FP32", shape=[1, 2])
    assert text_field(message.SerializeToString(), 1) == name


def test_a_model_that_is_loaded_is_named_in_field_2():
    message = service_pb2.RepositoryModelLoadRequest(repository_name="r", model_name="embed")
    assert text_field(message.SerializeToString(), 2) == "embed"


@given(junk=st.binary(max_size=60))
def test_of_any_bytes_it_says_what_the_library_says_or_that_they_are_no_message(junk):
    try:
        found = text_field(junk, 1)
    except NotAMessage:
        return
    message = service_pb2.ModelReadyRequest()
    try:
        message.ParseFromString(junk)
    except Exception:
        return  # it is the stricter one, about what is inside
    if message.name:
        assert found == message.name


def test_of_two_names_the_last_counts_as_it_does_for_the_server():
    twice = b"\x0a\x01a" + b"\x0a\x01b"
    assert service_pb2.ModelInferRequest.FromString(twice).model_name == "b"
    assert text_field(twice, 1) == "b"


def test_a_large_tensor_is_skipped_in_no_time_and_endless_fields_are_refused():
    large = service_pb2.ModelInferRequest(raw_input_contents=[bytes(64 * 2**20)], model_name="m")
    message = large.SerializeToString()
    began = time.perf_counter()
    assert text_field(message, 1) == "m"
    assert time.perf_counter() - began < 0.01
    with pytest.raises(NotAMessage, match="more than"):
        text_field(b"\x10\x01" * (FIELDS_MAX + 1), 1)
