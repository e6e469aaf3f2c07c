"""Bytes in, calls out: what is an answer, where it ends, and what is none. No sockets."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autoscaler.proxy.answer_parser import AnswerParser, Unreadable
from autoscaler.proxy.call import Call

OK = b"HTTP/1.1 200 OK\r\n"
COUNTED = OK + b"Content-Length: 2\r\n\r\nok"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"


def a_call(**kwargs: object) -> Call:
    return Call(lambda call: None, **kwargs)  # type: ignore[arg-type]


def fed(raw: bytes, *, step: int = 10**9, **kwargs: object) -> tuple[AnswerParser, Call]:
    parser, call = AnswerParser(), a_call(**kwargs)
    parser.expect(call)
    for at in range(0, len(raw), step):
        parser.feed(raw[at : at + step])
    return parser, call


def body_of(call: Call) -> bytes:
    return b"".join(call._pieces)


@pytest.mark.parametrize("step", [1, 7, 10**9])
def test_a_head_is_kept_as_it_came_however_it_is_cut(step):
    fields = b"X-Empty:\r\nx-lower:  a b \t\r\nX-Twice: 1\r\nX-Twice: 2\r\nContent-Length: 2"
    raw = b"HTTP/1.1 418 I am a teapot\r\n" + fields + b"\r\n\r\nok"
    parser, call = fed(raw, step=step)
    assert (call.status, call.reason) == (418, "I am a teapot")
    assert call.fields == [
        (b"X-Empty", b""), (b"x-lower", b"a b"), (b"X-Twice", b"1"), (b"X-Twice", b"2"),
        (b"Content-Length", b"2"),
    ]  # fmt: skip
    assert (body_of(call), parser.complete, parser.stays) == (b"ok", True, True)


@pytest.mark.parametrize(
    "raw, stays",
    [
        (COUNTED, True),
        (OK + b"Content-Length: 0\r\n\r\n", True),
        (CHUNKED + b"2;ext=1\r\nok\r\n0\r\n\r\n", True),
        (OK + b"Connection: close\r\nContent-Length: 2\r\n\r\nok", False),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", False),
        (b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok", True),
        # RFC 9112 §6.1: its framing is in doubt, whatever it says of the connection
        (b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", False),
        (b"HTTP/1.1 204 No Content\r\nContent-Length: 9\r\n\r\n", True),
        (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", True),
    ],
)
def test_an_answer_ends_where_it_says_and_says_whether_another_may_follow(raw, stays):
    parser, _ = fed(raw)
    assert (parser.complete, parser.stays) == (True, stays)


def test_an_answer_without_framing_ends_with_its_connection():
    parser, call = fed(OK + b"\r\nall there is")
    assert not parser.complete
    assert parser.feed_eof()
    assert (body_of(call), parser.stays) == (b"all there is", False)


@pytest.mark.parametrize("raw", [COUNTED[:-1], CHUNKED + b"2\r\nok\r\n", CHUNKED, OK, b""])
def test_an_answer_that_is_not_all_there_is_not_whole_when_its_connection_ends(raw):
    parser, _ = fed(raw)
    assert not parser.feed_eof()


@pytest.mark.parametrize(
    "head", [b"Content-Length: 9", b"Transfer-Encoding: chunked", b"X: no framing\r\nConnection: keep-alive"]
)
def test_an_answer_to_head_ends_with_its_head_and_the_next_one_is_read_well(head):
    parser, call = fed(OK + head + b"\r\n\r\n", expects_body=False)
    assert (call.status, parser.complete) == (200, True)
    parser.expect(after := a_call())
    parser.feed(COUNTED)
    assert (body_of(after), parser.complete) == (b"ok", True)


def test_informational_answers_come_before_the_final_one():
    told: list[tuple[int, list[tuple[bytes, bytes]]]] = []
    raw = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\nContent-Length: 5\r\n\r\n"
    parser, call = fed(raw, between=lambda status, fields: told.append((status, fields)))
    assert told == [(100, []), (103, [(b"Link", b"</a>"), (b"Content-Length", b"5")])]
    assert (call.has_head, parser.complete) == (False, False)
    parser.feed(COUNTED)
    assert (call.status, call.reason, body_of(call), parser.complete) == (200, "OK", b"ok", True)


def test_a_switch_of_protocols_hands_over_what_comes_behind_it():
    head = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    parser, call = fed(head + b"\x81\x02hi")
    assert (call.status, parser.switched, parser.complete, parser.tail) == (101, True, False, b"\x81\x02hi")


def test_trailers_are_no_headers():
    _, call = fed(CHUNKED + b"2\r\nok\r\n0\r\nX-Sum: 1\r\n\r\n")
    assert call.fields == [(b"Transfer-Encoding", b"chunked")]
    assert call.trailers == [(b"X-Sum", b"1")]


def test_obsolete_forms_are_read_in_the_form_that_all_read():
    _, call = fed(b"HTTP/1.1 200 OK\nA: one\r\n two\nContent-Length : 2\n\nok")
    assert call.fields == [(b"A", b"one two"), (b"Content-Length", b"2")]
    assert body_of(call) == b"ok"


@pytest.mark.parametrize(
    "raw",
    [
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"HTTP/1.1 20 OK\r\n\r\n",
        b"HTTP/1.1 099 Low\r\n\r\n",
        b"HTTP/1.1 2000 OK\r\n\r\n",
        # two framings, or one that can be read in two ways
        OK + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        OK + b"Content-Length: 2\r\nContent-Length: 2\r\n\r\nab",
        OK + b"Content-Length: 2, 2\r\n\r\nab",
        OK + b"Content-Length: +2\r\n\r\nab",
        OK + b"Content-Length: 0x2\r\n\r\nab",
        OK + b"Content-Length: -2\r\n\r\nab",
        OK + b"Content-Length:\r\n\r\nab",
        OK + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        OK + b"Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n0\r\n\r\n",
        OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        OK + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
        OK + b"Transfer-Encoding: chunked\t\r\n\r\n0\r\n\r\n",
        OK + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        OK + b"Transfer-Encoding: gzip\r\n\r\nzzz",
        OK + b"Transfer-Encoding : gzip\r\n\r\nzzz",
        CHUNKED + b"-2\r\nok\r\n0\r\n\r\n",
        CHUNKED + b"0x2\r\nok\r\n0\r\n\r\n",
        CHUNKED + b"fffffffffffffffff\r\nok",
        CHUNKED + b"2\r\nokX\r\n0\r\n\r\n",
        CHUNKED + b"2\nok\n0\n\n",
        CHUNKED + b"2\r\nok\r\n0\r\nContent-Length: 3\r\n\r\n",
        # heads that others read otherwise
        OK + b"A: b\rc\r\n\r\n",
        OK + b"no colon\r\n\r\n",
        OK + b": no name\r\n\r\n",
        OK + b"A\x00: b\r\n\r\n",
        OK + b"Connection: clos\x00e\r\nContent-Length: 0\r\n\r\n",
        # more than was said
        COUNTED + b"more",
        COUNTED + COUNTED,
        OK + b"Connection: close\r\nContent-Length: 2\r\n\r\nokmore",
        CHUNKED + b"0\r\n\r\nmore",
        b"HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\nok",
        # heads without an end
        OK + b"A: " + b"b" * 33 * 1024 + b"\r\n\r\n",
        OK + b"".join(b"X-%d: 1\r\n" % n for n in range(300)) + b"\r\n",
    ],
)
def test_what_is_no_answer_with_one_end_is_refused(raw):
    with pytest.raises(Unreadable):
        fed(raw)


@pytest.mark.parametrize("step", [1000, 60_000])
@pytest.mark.parametrize(
    "begins",
    [
        OK + b"A: ",  # a header
        b"HTTP/1.1 200 ",  # a reason phrase
        CHUNKED + b"2;",  # a chunk extension
        CHUNKED + b"2\r\nok\r\n0\r\nA: ",  # a trailer
    ],
)
def test_what_has_no_end_is_not_held_for_ever(begins, step):
    with pytest.raises(Unreadable):
        fed(begins + b"a" * 1_000_000, step=step)


def test_informational_answers_without_an_end_are_not_read_for_ever():
    with pytest.raises(Unreadable):
        fed(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" * 10_000, step=4000)


@pytest.mark.parametrize("more", [b"a body", COUNTED])
def test_a_body_where_none_may_be_is_refused(more):
    with pytest.raises(Unreadable):
        fed(OK + b"Content-Length: 6\r\n\r\n" + more, expects_body=False)


def test_what_nobody_asked_for_is_refused():
    parser = AnswerParser()
    with pytest.raises(Unreadable):
        parser.feed(COUNTED)


@pytest.mark.parametrize("reason", [b"caf\xe9", b"a\x01b"])
def test_a_reason_that_cannot_be_written_is_none(reason):
    _, call = fed(b"HTTP/1.1 200 " + reason + b"\r\nContent-Length: 0\r\n\r\n")
    assert call.reason is None


@settings(max_examples=100)
@given(pieces=st.lists(st.binary(min_size=1, max_size=40), max_size=8), step=st.integers(1, 60))
def test_a_chunked_body_is_the_sum_of_its_chunks_however_they_are_cut(pieces, step):
    raw = CHUNKED + b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"
    parser, call = fed(raw, step=step)
    assert (body_of(call), parser.complete) == (b"".join(pieces), True)
    assert call.held == len(b"".join(pieces))
