"""Tokens are found in every dialect, however the answer is cut, and nothing else is taken for them."""

import json
from itertools import count, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.domain import TokenUse
from autoscaler.proxy.tenants.tokens import TokenCount
from tests.fakes.openai_server import chat_body, chat_stream, chunk, event, usage

NEVER = float("nan")


def read(*pieces: bytes, asked: float = 5.0) -> TokenCount:
    """Show an answer; each look at the clock is a second after the one before."""
    seconds = count(1)
    tokens = TokenCount(asked, lambda: float(next(seconds)))
    for piece in pieces:
        tokens.note(piece)
    return tokens


def taken(*pieces: bytes, **more) -> tuple[int, int, bool] | None:
    use = read(*pieces, **more).use(started_at=0.0)
    return None if use is None else (use.tokens_in, use.tokens_out, use.is_estimated)


LLAMA = (
    b'{"choices":[],"usage":{"completion_tokens":4,"prompt_tokens":9,"total_tokens":13},"timings":{"n":1}}'
)
LOGPROBS = json.dumps(
    {"usage": usage(9, 4), "prompt_logprobs": [0.5] * 3000, "prompt_token_ids": None}
).encode()
EMBEDDINGS = json.dumps(
    {"usage": {"prompt_tokens": 6, "total_tokens": 6}, "data": [{"embedding": [0.25] * 5000}]}
).encode()
NEW_API = (
    event(type="response.created", response={"usage": None}),
    event(type="response.output_text.delta", delta="Hi"),
    event(type="response.completed", response={"usage": {"input_tokens": 9, "output_tokens": 4}}),
)
ANTHROPIC = (
    event(type="message_start", message={"usage": {"input_tokens": 25, "output_tokens": 1}}),
    event(type="content_block_delta", delta={"type": "text_delta", "text": "Hi"}),
    event(type="message_delta", usage={"output_tokens": 15}),
)


@pytest.mark.parametrize(
    ("pieces", "wanted"),
    [
        ([chat_body("hello", usage(9, 4))], (9, 4, False)),
        ([LLAMA], (9, 4, False)),
        ([LOGPROBS], (9, 4, False)),
        ([EMBEDDINGS], (6, 0, False)),
        (chat_stream(["a", "b"], usage(9, 7)), (9, 7, False)),
        (NEW_API, (9, 4, False)),
        (ANTHROPIC, (25, 15, False)),
        ([b'{"results": [], "usage": {"total_tokens": 8}}'], (8, 0, False)),
    ],
    ids=[
        "body",
        "llama.cpp",
        "logprobs behind",
        "embeddings behind",
        "stream",
        "responses",
        "anthropic",
        "rerank",
    ],
)
def test_what_the_answer_says_counts(pieces, wanted):
    assert taken(*pieces) == wanted


def test_a_stream_that_says_nothing_is_counted_by_its_pieces_of_text():
    assert taken(*chat_stream(["Hello", ",", " data: x"])) == (5, 3, True)


def test_words_of_reasoning_and_arguments_of_tools_are_tokens_too():
    call = {"tool_calls": [{"index": 0, "function": {"arguments": '{"a'}}]}
    pieces = [chunk({"reasoning_content": "hm"}), chunk(call), event(choices=[{"index": 0, "text": "x"}])]
    assert taken(*pieces) == (5, 3, True)


def test_what_a_text_contains_is_no_usage_and_no_delta():
    text = '"usage": {"prompt_tokens": 1000} "content":"x"'
    assert taken(*chat_stream([text])) == (5, 1, True)
    assert taken(chat_body(text, None)) is None
    assert taken(*chat_stream(["usage"], usage(9, 1))) == (9, 1, False)


@pytest.mark.parametrize(
    "body", [b"", b"{}", b'{"error": {"message": "no"}}', b"ID3\x04\x00", b"\x1f\x8b\x08\x00"], ids=repr
)
def test_an_answer_without_tokens_has_none(body):
    assert taken(body) is None


@pytest.mark.parametrize("said", [b"null", b"[]", b'"x"', b'{"prompt_tokens": -1}', b'{"prompt_tokens": 1'])
def test_a_usage_that_cannot_be_is_none(said):
    assert taken(b'{"usage": ' + said) is None


def test_a_usage_of_every_chunk_counts_once_the_last():
    pieces = [chunk({"content": "a"}, usage=usage(9, at)) for at in (1, 2, 3)]
    assert taken(*pieces) == (9, 3, False)


def test_the_first_and_the_last_text_are_timed_not_what_is_around_them():
    use = read(*chat_stream(["a", "b", "c"], usage(9, 3))).use(started_at=0.5)
    assert use == TokenUse(9, 3, False, started_at=0.5, first_at=1.0, last_at=3.0)
    assert use.time_per_token == 1.0


def test_an_answer_in_one_piece_has_no_first_token():
    use = read(chat_body("hello", usage(9, 4))).use(started_at=0.5)
    assert not use.is_streamed
    assert str(use.time_per_token) == "nan"


def test_one_token_has_no_time_to_the_next():
    use = read(*chat_stream(["a"])).use(started_at=0.0)
    assert use.is_streamed
    assert str(use.time_per_token) == "nan"


@pytest.mark.parametrize(
    ("pieces", "wanted"),
    [
        ([b"x" * 400], 105.0),
        ([b"data: x\n\n"] * 7, 12.0),
        (chat_stream(["a", "b"]), 7.0),
        (chat_stream(["a", "b"], usage(9, 4)), 13.0),
        (ANTHROPIC[1:], 20.0),
    ],
    ids=["bytes", "events", "deltas", "said", "half said"],
)
def test_a_tenant_is_billed_what_is_said_or_an_estimate(pieces, wanted):
    assert read(*pieces).tokens == wanted


ANSWERS = [
    b"".join(chat_stream(["Hello", ",", ' "usage":{ ', "ü\n"], usage(9, 7))),
    b"".join(chat_stream(["Hello", ",", " world"])).replace(b"\n", b"\r\n"),
    chat_body("hello", usage(9, 4)),
    LLAMA,
    b"".join(ANTHROPIC),
]


@given(answer=st.sampled_from(ANSWERS), cuts=st.lists(st.integers(0, 700), max_size=12))
def test_it_does_not_matter_how_an_answer_is_cut(answer, cuts):
    edges = [0, *sorted(min(cut, len(answer)) for cut in cuts), len(answer)]
    pieces = [answer[begin:end] for begin, end in pairwise(edges)]
    assert taken(*pieces) == taken(answer)
    assert read(*pieces).tokens == read(answer).tokens


TOOL = {"tool_calls": [{"index": 0, "function": {"arguments": '{"a'}}]}
KINDS = {
    chunk({"content": "a"}): 1,
    chunk({"content": ' "content":"x" data: \n'}): 1,
    chunk({"content": ""}): 0,
    chunk({"reasoning_content": "hm"}): 1,
    chunk(TOOL): 1,
    chunk({}, "stop"): 0,
    event(choices=[{"index": 0, "delta": {"content": "a"}}, {"index": 1, "delta": {"content": "b"}}]): 2,
    b": ping\n\n": 0,
    b"event: delta\n" + chunk({"content": "a"}): 1,
}


@given(
    events=st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=30),
    together=st.lists(st.integers(1, 3), min_size=30, max_size=30),
)
def test_each_text_counts_once_whatever_stands_between_and_however_events_come_together(events, together):
    pieces, rest = [], list(events)
    for number in together:
        pieces.append(b"".join(rest[:number]))
        del rest[:number]
    assert read(*pieces)._deltas == sum(KINDS[each] for each in events)


def test_a_text_that_looks_like_data_does_not_hide_a_second_choice():
    two = event(choices=[{"index": 0, "delta": {"content": "a"}}, {"index": 1, "delta": {"content": "b"}}])
    assert read(two + chunk({"content": ' "content":"x" data: '}), two)._deltas == 5


def test_what_is_held_of_a_stream_does_not_grow_with_it():
    tokens = read(*[b'{"usage": {"prompt_tokens": 1}, "data": "', *[b"x" * 65536] * 20, b'"}'])
    events = read(b"data: ", *[b"x" * 65536] * 20)
    for each in (tokens, events):
        held = sum(len(value) for value in vars(each).values() if isinstance(value, bytes))
        assert held <= 3 * 65536
