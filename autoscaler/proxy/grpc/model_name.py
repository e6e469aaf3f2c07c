"""Finds the name of the model in a message of the wire format, without decoding the rest.

A message is a row of fields, each a key (field number and kind) and a value; a value of variable length says
how long it is, so tensors are skipped in one step. The outermost fields are read to the end, because of a
field that comes twice the last one counts: a proxy that took the first would route by another name than the
server sees. The number of fields is bounded, and a message that is none raises.

Source of the format: Protocol Buffers documentation, "Encoding".
"""

FIELDS_MAX = 10_000
"""More outermost fields than this are not looked through [1]; a request has a few for each tensor."""

_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5
_VARINT_BYTES_MAX = 10


class NotAMessage(ValueError):
    """The bytes are no message; the text says why."""


def text_field(message: bytes, number: int) -> str:
    """Return the text of the outermost field `number`; empty if it is not there, as the format has it.

    Raises
    ------
    NotAMessage
        If the bytes break the format, the text is not UTF-8, or there are more than `FIELDS_MAX` fields.
    """
    found, at, end = b"", 0, len(message)
    for _ in range(FIELDS_MAX):
        if at == end:
            return _text(found)
        key = message[at]  # almost always all of it
        if key < 0x80:
            at += 1
        else:
            key, at = _varint(message, at)
        kind = key & 7
        if kind == _LENGTH:
            length, at = _varint(message, at)
            if length > end - at:
                raise NotAMessage("a field reaches beyond the end of the message")
            if key >> 3 == number:
                found = message[at : at + length]
            at += length
        elif kind == _VARINT:
            _, at = _varint(message, at)
        elif kind in (_FIXED64, _FIXED32):
            at += 8 if kind == _FIXED64 else 4
        else:
            raise NotAMessage(f"a field has the kind {kind}, which there is not")
        if at > end:
            raise NotAMessage("a field reaches beyond the end of the message")
    if at == end:
        return _text(found)
    raise NotAMessage(f"it has more than {FIELDS_MAX} fields")


def _varint(message: bytes, at: int) -> tuple[int, int]:
    """Return the number that begins at `at`, and where the next thing begins."""
    value = shift = 0
    for byte in message[at : at + _VARINT_BYTES_MAX]:
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise NotAMessage("a number has no end")


def _text(raw: bytes) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise NotAMessage("the name of the model is not UTF-8") from error
