"""Reads the answers of one connection, one after the other, into calls. Bytes in; knows no socket.

The parser is llhttp, as strict as it can be while heads in an obsolete form (folded lines, bare line feeds)
still pass. What it lets through is refused here: more bytes than the answer said, a transfer coding other
than chunked, for nobody asked for one, and heads without an end. What must never happen is that two parties
see different ends of one answer.
"""

from http import HTTPStatus

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from autoscaler.proxy.call import Call, Fields

_LINE_MAX, _FIELDS_MAX = 32 * 1024, 256
"""What a server may send as a header [bytes], and how many [1]; more than clients may send us."""

_OVERHEAD_MAX = 256 * 1024
"""What a server may send without any of the body among it: a head, chunk extensions, trailers [bytes]."""

_FRAMING = frozenset((len("Content-Length"), len("Transfer-Encoding")))
"""How long the names are that say where a body ends [bytes]."""

_WITHOUT_BODY = (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED)


class Unreadable(Exception):
    """What came is no answer, or not one with one end; the text says why."""


class AnswerParser:
    """Feeds one call at a time; its public attributes tell how far the answer to it has come."""

    __slots__ = (
        "_call", "_fields", "_is_chunked", "_is_counted", "_is_spent", "_parser", "_reason", "complete",
        "overhead", "stays", "switched", "tail",
    )  # fmt: skip

    def __init__(self) -> None:
        self._parser = self._new_parser()
        self._call: Call | None = None
        self._is_spent = False
        self.complete = False
        """Whether the last byte of the answer was read."""
        self.stays = False
        """Whether the connection may be used again then."""
        self.switched = False
        """Whether the connection speaks another protocol now."""
        self.tail = b""
        """What has come in that protocol."""
        self.overhead = 0
        """What has come since the call began, or since the last of the body [bytes]."""
        self._new_head()

    def expect(self, call: Call) -> None:
        """Read the next answer into `call`."""
        self._call = call
        if self._is_spent:
            self._parser, self._is_spent = self._new_parser(), False
        self._start()

    def feed(self, data: bytes) -> None:
        """Take in what has come; raises `Unreadable`, and then nothing of it counts."""
        self.overhead += len(data)
        try:
            self._parser.feed_data(data)
        except HttpParserUpgrade as upgrade:
            self.tail = data[upgrade.args[0] :]
        except HttpParserError as error:
            raise Unreadable(str(error.__context__ or error)) from error
        if self.overhead > _OVERHEAD_MAX:
            raise Unreadable(
                f"a head, or what stands between the chunks, is longer than {_OVERHEAD_MAX} bytes"
            )

    def feed_eof(self) -> bool:
        """Nothing more comes; return whether the answer is whole."""
        call = self._call
        if call is not None and call.has_head and not (self._is_chunked or self._is_counted or self.switched):
            self.complete = True
        return self.complete

    def _start(self) -> None:
        self.complete = self.stays = self.switched = False
        self.tail = b""
        self.overhead = 0
        self._new_head()

    def _new_head(self) -> None:
        self._fields: Fields = []
        self._reason = b""
        self._is_chunked = self._is_counted = False

    def _new_parser(self) -> HttpResponseParser:
        parser = HttpResponseParser(self)
        parser.set_dangerous_leniencies(
            lenient_headers=True, lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True
        )
        return parser

    # -- what llhttp finds

    def on_message_begin(self) -> None:
        if self._call is None or self._call.has_head:
            raise Unreadable("more came than was said")

    def on_status(self, reason: bytes) -> None:
        self._reason += reason

    def on_header(self, name: bytes, value: bytes) -> None:
        if len(name) + len(value) > _LINE_MAX:
            raise Unreadable(f"a header is longer than {_LINE_MAX} bytes")
        if len(self._fields) >= _FIELDS_MAX:
            raise Unreadable(f"there are more than {_FIELDS_MAX} headers")
        if b"\0" in value:
            raise Unreadable("a header holds a NUL")
        name = name.rstrip(b" \t")  # RFC 9112 §5.1
        self._fields.append((name, value.rstrip(b" \t")))
        if len(name) in _FRAMING:
            self._note_framing(name.lower(), value.rstrip(b" "))  # llhttp takes no tab for a space here

    def on_headers_complete(self) -> None:
        call = self._call
        if call is None:
            raise Unreadable("nothing was asked")
        status, fields = self._parser.get_status_code(), self._fields
        if status < HTTPStatus.CONTINUE:
            raise Unreadable(f"there is no status {status}")
        if status < HTTPStatus.OK and status != HTTPStatus.SWITCHING_PROTOCOLS:
            self._new_head()
            if call.between is not None:
                call.between(status, fields)
            return
        self._fields = []
        call.begin(status, _text(self._reason), fields)
        self.switched = status == HTTPStatus.SWITCHING_PROTOCOLS
        self.stays = self._parser.should_keep_alive()
        if self._is_chunked and self._parser.get_http_version() != "1.1":
            self.stays = False  # RFC 9112 §6.1
        if status in _WITHOUT_BODY:
            self._is_counted = True
        elif not call.expects_body and not self.switched:
            self.complete = self._is_spent = True

    def on_body(self, piece: bytes) -> None:
        if self._call is None or self.complete:
            raise Unreadable("there is a body where none may be")
        self._call.take(piece)
        self.overhead = 0

    def on_message_complete(self) -> None:
        call = self._call
        if call is not None and call.has_head and not self.switched:
            call.trailers = self._fields
            self.complete = True

    def _note_framing(self, name: bytes, value: bytes) -> None:
        if name == b"content-length":
            self._is_counted = True
        elif name == b"transfer-encoding":
            if value.lower() != b"chunked":
                raise Unreadable(f"nobody asked for the transfer coding {value!r}")
            self._is_chunked = True


def _text(reason: bytes) -> str | None:
    """Return a reason phrase, if it can be written again."""
    try:
        text = reason.decode()
    except UnicodeDecodeError:
        return None
    return text if text.isprintable() else None
