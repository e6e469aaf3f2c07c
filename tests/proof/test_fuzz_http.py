"""Whatever bytes a client or a server says: an end, one answer a request, and nothing passed on unasked.

Each example is one connection. It ends with a request that asks for the close of the connection, so a proxy
that is still in step with its client closes it; one that is not is told by a limit. `FUZZ_EXAMPLES` makes it
longer.
"""

import os
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fakes.fuzz_wire import Answer, FuzzWire, answers_in, digest, fuzz_wire

EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "60"))
ASKED_WRONGLY = {400, 405, 408, 413, 414, 417, 431, 501, 505}
"""What the proxy may say of a request by itself."""

fuzz = settings(max_examples=EXAMPLES)


@pytest.fixture(scope="module")
def wire() -> Iterator[FuzzWire]:
    with fuzz_wire() as running:
        yield running


LAST = b"GET /last HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
SMUGGLED = b"GET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n"

# -- requests as they should be

TOKEN = st.text("!#$%&'*+-.^_`|~0123456789abcXYZ", min_size=1, max_size=12).map(str.encode)
VALUE = st.text(st.characters(codec="latin-1", exclude_characters="\x7f", min_codepoint=33), max_size=30).map(
    lambda text: text.encode("latin-1")
)
FIELDS = st.lists(st.tuples(TOKEN.map(lambda name: b"X-" + name), VALUE), max_size=6)
BODY = st.one_of(st.binary(max_size=300), st.just(SMUGGLED), st.just(b"0\r\n\r\n" + SMUGGLED))
TARGET = st.text("abc/%20~?&=.;@:!$'()*+,", max_size=20).map(lambda text: b"/" + text.encode())


@st.composite
def chunked(draw: st.DrawFn, body: bytes) -> bytes:
    """`body` in chunks of any size, with extensions and trailers that nobody needs."""
    said, left = b"", body
    while left:
        size = draw(st.integers(1, len(left)))
        extension = draw(st.sampled_from([b"", b";a", b";a=b", b';a="b;c"']))
        digits = draw(st.sampled_from([b"%x", b"%X", b"00%x"])) % size
        said += digits + extension + b"\r\n" + left[:size] + b"\r\n"
        left = left[size:]
    return said + b"0\r\n" + draw(st.sampled_from([b"", b"X-Trailer: 1\r\n"])) + b"\r\n"


@st.composite
def requests(draw: st.DrawFn) -> tuple[bytes, bytes, bytes]:
    """A request in bytes, its method and its body."""
    method = draw(st.sampled_from([b"GET", b"POST", b"PUT", b"PATCH", b"DELETE", b"OPTIONS", b"HEAD"]))
    body = b"" if method in (b"GET", b"HEAD") else draw(BODY)
    lines = [method + b" " + draw(TARGET) + b" HTTP/1.1", b"Host: h"]
    lines += [name + b": " + value for name, value in draw(FIELDS)]
    said = body
    if body and draw(st.booleans()):
        lines.insert(draw(st.integers(1, len(lines))), b"Transfer-Encoding: chunked")
        said = draw(chunked(body))
    elif body or draw(st.booleans()):
        lines.insert(draw(st.integers(1, len(lines))), b"Content-Length: %d" % len(body))
    return b"\r\n".join(lines) + b"\r\n\r\n" + said, method, body


def in_pieces(draw: st.DrawFn, said: bytes) -> list[bytes]:
    """As TCP may deliver it."""
    cuts = sorted(draw(st.lists(st.integers(0, len(said)), max_size=4)))
    return [
        piece for start, end in zip([0, *cuts], [*cuts, len(said)], strict=True) if (piece := said[start:end])
    ]


# -- what must hold whatever was said


def check(wire: FuzzWire, pieces: list[bytes]) -> list[Answer]:
    """The answers; each well-formed, each by the contract, one for each request that the server saw."""
    before = len(wire.seen)
    answers = answers_in(wire.exchange(pieces))
    passed_on = [answer.serial for answer in answers if answer.serial >= 0]
    assert passed_on == list(range(before, len(wire.seen))), (
        "the server saw other requests than were answered"
    )
    assert all(answer.status in ASKED_WRONGLY for answer in answers if answer.serial < 0), answers
    for answer in answers:
        if answer.serial >= 0 and answer.fields["x-method"] != "HEAD":
            assert answer.body == digest(wire.seen[answer.serial].body)
    return answers


@fuzz
@given(data=st.data(), asked=st.lists(requests(), min_size=1, max_size=3))
def test_what_is_right_arrives_once_in_order_and_whole(wire, data, asked):
    said = b"".join(request for request, _, _ in asked) + LAST
    answers = check(wire, in_pieces(data.draw, said))
    assert [answer.status for answer in answers] == [200] * (len(asked) + 1)
    got = [wire.seen[answer.serial] for answer in answers]
    assert [(each.head.method.encode(), each.body) for each in got[:-1]] == [
        (method, body) for _, method, body in asked
    ]
    assert got[-1].head.target == "/last"


NASTY = [
    b"\r\n", b"\n", b"\r", b"\x00", b" ", b"\t", b":", b"\x0b", b"\xff", b"0\r\n\r\n",
    b"Transfer-Encoding: chunked\r\n", b"Transfer-Encoding: gzip, chunked\r\n",
    b"Transfer-Encoding:\x0bchunked\r\n", b"Content-Length: 0\r\n", b"Content-Length: 3\r\n",
    b"Content-Length: +3\r\n", b"Content-Length: 3, 3\r\n", b"content-length : 3\r\n",
    b"Connection: close\r\n", b"Connection: keep-alive, host\r\n", b"Expect: 100-continue\r\n",
    b"Expect: x\r\n", b"Upgrade: websocket\r\nConnection: Upgrade\r\n", b"Host: other\r\n", b" folded\r\n",
    b"HTTP/1.0", b"HTTP/2.0", b"http://h/", b"*", b"#", b"..", b"-1", b"0x3", b"ffffffffffffffff",
    b"\r\n\r\n", SMUGGLED,
]  # fmt: skip


@st.composite
def spoilt(draw: st.DrawFn) -> bytes:
    """Requests as they should be, with something wrong in them."""
    said = bytearray(
        b"".join(request for request, _, _ in draw(st.lists(requests(), min_size=1, max_size=3)))
    )
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(said)))
        match draw(st.sampled_from(["insert", "insert line", "delete", "flip", "repeat"])):
            case "insert":
                said[at:at] = draw(st.sampled_from(NASTY))
            case "insert line":
                line = said.find(b"\r\n", at) + 2
                said[line:line] = draw(st.sampled_from(NASTY))
            case "delete":
                del said[at : at + draw(st.integers(1, 8))]
            case "flip" if at < len(said):
                said[at] = draw(st.integers(0, 255))
            case "repeat":
                line = said.find(b"\r\n", at) + 2
                said[at:at] = said[at:line]
    return bytes(said)


@fuzz
@given(data=st.data(), said=spoilt())
def test_what_is_wrong_is_refused_or_understood_as_the_server_understands_it(wire, data, said):
    check(wire, in_pieces(data.draw, said + LAST))


@fuzz
@given(lines=st.lists(st.sampled_from(NASTY), max_size=5), body=BODY)
def test_a_head_made_of_all_that_is_nasty_is_refused_or_understood(wire, lines, body):
    head = b"POST /x HTTP/1.1\r\nHost: h\r\n" + b"".join(lines)
    answers = check(wire, [head + b"\r\n" + body + LAST])
    first = head.partition(b"\r\n\r\n")[0].lower()
    if first.count(b"content-length") and first.count(b"transfer-encoding"):
        assert answers[0].status != 200, "two framings at once"


@fuzz
@given(st.binary(max_size=400))
def test_noise_is_refused(wire, said):
    check(wire, [said, b"\r\n\r\n", LAST])


# -- what servers say

REPLY = st.sampled_from(
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        b"HTTP/1.1 204 No Content\r\n\r\n",
        b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.0 200 OK\r\n\r\nuntil the end",
    ]
)


@st.composite
def spoilt_replies(draw: st.DrawFn) -> bytes:
    said = bytearray(draw(REPLY))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(said)))
        match draw(st.sampled_from(["insert", "delete", "flip", "cut"])):
            case "insert":
                said[at:at] = draw(st.sampled_from(NASTY))
            case "delete":
                del said[at : at + draw(st.integers(1, 8))]
            case "flip" if at < len(said):
                said[at] = draw(st.integers(0, 255))
            case "cut":
                del said[at:]
    return bytes(said)


@fuzz
@given(reply=spoilt_replies())
def test_whatever_a_server_says_its_client_gets_one_answer_and_the_next_one_its_own(wire, reply):
    wire.reply = reply
    before = len(wire.seen)
    stream = wire.exchange([b"GET /fuzz HTTP/1.1\r\nHost: h\r\n\r\n" + LAST])
    if len(wire.seen) == before:  # the connection was ended with the first answer
        return
    assert len(wire.seen) == before + 1
    tail = b"X-Serial: %d\r\n" % before
    assert stream.count(b"X-Serial: ") == stream.count(tail) == 1
    assert stream.endswith(digest(b"")), "the last answer is not whole"
    ours = stream[: stream.rindex(b"HTTP/1.1 ", 0, stream.index(tail))]
    assert ours.startswith(b"HTTP/1.1 "), "the first request has no answer"
