"""What is merged and split again is what each would have got alone; the client library is the judge."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from tritonclient import grpc as of_grpc
from tritonclient import http as of_http

from autoscaler.kserve.grpc_form import read_grpc, write_grpc
from autoscaler.kserve.infer import InferAnswer, InferRequest, OutputAsked
from autoscaler.kserve.layout import strings_to_wire
from autoscaler.kserve.merge import merge, split
from autoscaler.kserve.read_answer import read_answer
from autoscaler.kserve.read_http import HEADER_LENGTH, read_http
from autoscaler.kserve.tensor import NotMergeable, Tensor
from autoscaler.kserve.write_http import all_have_form, has_form, write_http
from tests.kserve.tensors import Item, batches, grpc_message, http_body


def read(item: Item) -> InferRequest:
    if item.form == "grpc":
        return read_grpc(grpc_message(item))
    body, length = http_body(item, ["y"] if item.form == "json" else None)
    return read_http("m", "", body, length)


def identity(body: bytes, length: int) -> InferAnswer:
    """What a model answers that gives back its input as `y`; over the wire, in the binary form."""
    asked = read_http("m", "", body, length)
    assert asked.all_binary
    outputs = [
        {
            "name": "y",
            "datatype": tensor.datatype,
            "shape": tensor.shape,
            "parameters": {"binary_data_size": len(tensor.data)},
        }
        for tensor in asked.inputs
    ]
    head = json.dumps({"model_name": "m", "model_version": "1", "outputs": outputs}).encode()
    return read_answer(head + b"".join(bytes(tensor.data) for tensor in asked.inputs), len(head))


def seen_by_client(item: Item, answer: InferAnswer) -> np.ndarray:
    if item.form == "grpc":
        message = of_grpc.service_pb2.ModelInferResponse.FromString(write_grpc(answer, read(item)))
        assert (message.model_name, message.id) == ("m", item.id)
        return of_grpc.InferResult(message).as_numpy("y")
    assert has_form(answer, read(item))
    fields, body = write_http(answer, read(item))
    length = fields.get(HEADER_LENGTH)
    result = of_http.InferResult.from_response_body(
        body, header_length=None if length is None else int(length)
    )
    assert result.get_response().get("id", "") == item.id
    assert (length is not None) is (item.form == "binary")
    return result.as_numpy("y")


@given(items=batches())
@settings(max_examples=200)
def test_each_gets_its_own_rows_bit_for_bit_whatever_the_forms(items):
    requests = [read(item) for item in items]
    assert len({request.bucket() for request in requests}) == 1
    body, length = merge(requests)
    answers = split(identity(body, length), requests)
    for item, answer in zip(items, answers, strict=True):
        got = seen_by_client(item, answer)
        assert got.shape == item.values.shape
        if item.values.dtype == object:
            assert [v if isinstance(v, bytes) else v.encode() for v in got.ravel()] == list(
                item.values.ravel()
            )
        else:
            assert got.dtype == item.values.dtype
            assert got.tobytes() == item.values.tobytes()


def json_request(**changes: object) -> InferRequest:
    one = {"name": "x", "shape": [1, 2], "datatype": "INT32", "data": [1, 2]}
    body = {"inputs": [one]} | changes
    return read_http("m", "", json.dumps(body).encode(), None)


def with_input(**changes: object) -> dict[str, object]:
    one = {"name": "x", "shape": [1, 2], "datatype": "INT32", "data": [1, 2]} | changes
    return {"inputs": [{name: value for name, value in one.items() if value is not None}]}


def test_data_may_be_flat_or_nested():
    flat, nested = json_request(), json_request(**with_input(data=[[1, 2]]))
    assert flat == nested
    assert bytes(flat.inputs[0].data) == b"\1\0\0\0\2\0\0\0"


# What a request that must go alone looks like, by the case that it stands for.
ALONE = {
    "T9 a shape larger than the data": with_input(shape=[2147483648]),
    "T9 an output that is asked for twice": {"outputs": [{"name": "y"}, {"name": "y"}]},
    "T12 no rows": with_input(shape=[0], data=[]),
    "T12 rows of nothing": with_input(shape=[2, 0], data=[]),
    "T18 a sequence": {"parameters": {"sequence_id": 7}},
    "T18 a reserved name": {"parameters": {"triton_enable_empty_final_response": True}},
    "a scalar": with_input(shape=[], data=[1]),
    "too few values": with_input(data=[1]),
    "a fraction for an integer": with_input(data=[1, 2.5]),
    "a number for a truth value": with_input(datatype="BOOL"),
    "a number that does not fit": with_input(datatype="INT8", data=[1, 200]),
    "ragged data": with_input(shape=[2, 2], data=[[1, 2], [3]]),
    "data nested otherwise than the shape": with_input(shape=[4, 1], data=[[1, 2], [3, 4]]),
    "ragged text": with_input(datatype="BYTES", shape=[2, 2], data=[["a", "b"], ["c"]]),
    "text nested otherwise than the shape": with_input(datatype="BYTES", shape=[2, 1], data=[["a", "b"]]),
    "half precision in JSON": with_input(datatype="FP16", data=[1.0, 2.0]),
    "an unknown datatype": with_input(datatype="FP8"),
    "no data": with_input(data=None),
    "shared memory": with_input(data=None, parameters={"shared_memory_region": "r"}),
    "an unknown field": {"extra": 1},
    "no inputs": {"inputs": []},
    "two inputs of different rows": {
        "inputs": [
            {"name": "x", "shape": [1, 2], "datatype": "INT32", "data": [1, 2]},
            {"name": "z", "shape": [2, 1], "datatype": "INT32", "data": [1, 2]},
        ]
    },
    "an input that comes twice": {"inputs": 2 * with_input()["inputs"]},
}


@pytest.mark.parametrize("changes", ALONE.values(), ids=ALONE.keys())
def test_what_is_not_understood_in_full_goes_alone(changes):
    with pytest.raises(NotMergeable):
        json_request(**changes)


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'"x"', b'{"inputs": [{"name": 1}]}', b"\xff"])
def test_a_body_that_is_none_goes_alone(body):
    for length in (None, len(body), len(body) + 1, 0, -1):
        with pytest.raises(NotMergeable):
            read_http("m", "", body, length)


@pytest.mark.parametrize("size", [-1, 7, 9, "8", 8.0])
def test_binary_data_must_end_where_the_body_does(size):
    one = {"name": "x", "shape": [1, 2], "datatype": "INT32", "parameters": {"binary_data_size": size}}
    head = json.dumps({"inputs": [one]}).encode()
    with pytest.raises(NotMergeable):
        read_http("m", "", head + bytes(8), len(head))


# T3, T18, A11: what tells buckets apart.
@pytest.mark.parametrize(
    "changes",
    [
        with_input(shape=[1, 1], data=[1]),
        with_input(datatype="INT64"),
        with_input(name="z"),
        {"parameters": {"temperature": 0.7}},
        {"parameters": {"priority": 1}},
        {"parameters": {"flag": True}},
        {"outputs": [{"name": "y", "parameters": {"classification": 2}}]},
    ],
)
def test_only_equals_share_a_bucket(changes):
    assert json_request(**changes).bucket() != json_request().bucket()


def test_a_parameter_is_told_from_one_that_only_compares_equal():
    ones = [json_request(parameters={"p": value}).bucket() for value in (1, 1.0, True)]
    assert len(set(ones)) == 3


@pytest.mark.parametrize(
    "changes", [with_input(shape=[2, 2], data=[1, 2, 3, 4]), {"id": "a"}, {"outputs": [{"name": "y"}]}]
)
def test_rows_ids_and_wanted_outputs_do_not_separate(changes):
    assert json_request(**changes).bucket() == json_request().bucket()


def tensor(name: str, *rows: int) -> Tensor:
    return Tensor(name, "UINT8", (len(rows), 1), bytes(rows))


def test_each_is_given_the_outputs_that_it_asked_for():  # A12
    a = json_request(outputs=[{"name": "out1"}])
    b = json_request(outputs=[{"name": "out2"}, {"name": "out1"}])
    body, length = merge([a, b])
    assert [output["name"] for output in json.loads(body[:length])["outputs"]] == ["out1", "out2"]
    first, second = split(InferAnswer("m", "1", (tensor("out1", 1, 2), tensor("out2", 3, 4))), [a, b])
    assert [(t.name, bytes(t.data)) for t in first.outputs] == [("out1", b"\1")]
    assert {(t.name, bytes(t.data)) for t in second.outputs} == {("out1", b"\2"), ("out2", b"\4")}


def test_whoever_asks_for_all_makes_all_be_asked_for():  # A12
    body, length = merge([json_request(outputs=[{"name": "out1"}]), json_request()])
    assert "outputs" not in json.loads(body[:length])


def test_parameters_travel_with_the_merged_request():  # A11
    one = json_request(parameters={"temperature": 0.7})
    body, length = merge([one, one])
    assert json.loads(body[:length])["parameters"] == {"temperature": 0.7, "binary_data_output": True}


@pytest.mark.parametrize("rows", [(1,), (1, 2, 3), ()])  # T13, A10
def test_a_model_that_ignores_rows_is_found_out(rows):
    answer = InferAnswer("m", "1", (Tensor("y", "UINT8", (len(rows), 1), bytes(rows)),))
    with pytest.raises(NotMergeable):
        split(answer, [json_request(), json_request()])


def test_a_missing_output_is_found_out():
    asks = json_request(outputs=[{"name": "y"}])
    with pytest.raises(NotMergeable):
        split(InferAnswer("m", "1", (tensor("z", 1, 2),)), [asks, asks])


def test_strings_are_cut_where_they_end():  # A13
    strings = Tensor("y", "BYTES", (2, 1), strings_to_wire([b"a", b"bb"]))
    asks = InferRequest("m", "", (tensor("x", 1),), (OutputAsked("y"),))
    one, other = split(InferAnswer("m", "1", (strings,)), [asks, asks])
    assert (one.outputs[0].strings(), other.outputs[0].strings()) == ([b"a"], [b"bb"])


@pytest.mark.parametrize("data", [b"\1\0\0\0", b"\1\0\0\0ab", b"\xff\xff\xff\xffab", b"\1\0"])
def test_strings_that_lie_about_their_length_go_alone(data):
    with pytest.raises(NotMergeable):
        Tensor("x", "BYTES", (1,), data).check()


BINARY = {"parameters": {"binary_data": True}}


@pytest.mark.parametrize(
    "output",
    [
        Tensor("y", "FP16", (1, 1), b"\0\0"),
        Tensor("y", "BF16", (1, 1), b"\0\0"),
        Tensor("y", "FP32", (1, 1), np.array([np.nan], "f4").tobytes()),
        Tensor("y", "BYTES", (1, 1), strings_to_wire([b"\xff"])),
    ],
)
def test_what_has_no_form_in_json_is_left_to_the_server(output):
    answer = InferAnswer("m", "1", (output,))
    in_bytes = json_request(parameters={"binary_data_output": True})
    over_grpc = read_grpc(grpc_message(Item(np.ones((1, 1), "f2"), "grpc")))
    assert not has_form(answer, json_request())
    assert not all_have_form(answer, [in_bytes, json_request()])
    for asked in (in_bytes, over_grpc, json_request(outputs=[{"name": "y", **BINARY}])):
        assert has_form(answer, asked)
        assert all_have_form(answer, [asked, in_bytes])


def test_an_answer_in_numbers_is_read_too():
    body = b'{"outputs": [{"name": "y", "shape": [2, 1], "datatype": "FP32", "data": [0.5, 1.5]}]}'
    [output] = read_answer(body, None).outputs
    assert np.frombuffer(output.data, "f4").tolist() == [0.5, 1.5]


@pytest.mark.parametrize("body", [b"", b"[]", b'{"error": "boom"}', b'{"outputs": [{"name": "y"}]}'])
def test_what_is_no_answer_cannot_be_split(body):
    with pytest.raises(NotMergeable):
        read_answer(body, None)


def test_typed_contents_are_read_like_raw_ones():
    message = of_grpc.service_pb2.ModelInferRequest(model_name="m")
    one = message.inputs.add(name="x", datatype="INT8", shape=[1, 2])
    one.contents.int_contents.extend([1, -2])
    assert bytes(read_grpc(message.SerializeToString()).inputs[0].data) == b"\1\xfe"
    one.contents.int_contents[1] = 200
    with pytest.raises(NotMergeable):
        read_grpc(message.SerializeToString())


@pytest.mark.parametrize("message", [b"\xff", b"", b"\x0a\x01m"])
def test_a_message_that_is_none_goes_alone(message):
    with pytest.raises(NotMergeable):
        read_grpc(message)
