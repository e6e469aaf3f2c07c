"""One member of the object that a JSON text is, found without parsing the text.

The text is gone through from one quote or bracket to the next, so that strings are skipped whole, however
long, and members of inner objects are told from those of the outermost one. What stands behind the member is
not looked at, so the beginning of a text may do. It is no check: a text that is no JSON may have one.
"""

import re
from enum import Enum, auto

import msgspec

STEPS_MAX = 200_000
"""A text is given up on after so many strings and brackets [1]: about 0.1 s."""

_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+("?)|[][{}]', re.DOTALL)
"""A string, to its end or to that of what is here; or a bracket."""
_COLON = re.compile(rb"\s*+(:?)\s*+")
_OPENING = b"{["


class Missing(Enum):
    """Why there is none."""

    NOT_THERE = auto()
    NOT_TEXT = auto()
    """It is there, and is no text; or the whole is no object."""
    NOT_YET = auto()
    """It may stand in what has not come."""
    TOO_DEEP = auto()
    """It was not found within `STEPS_MAX`."""


def text_member(body: bytes, name: str) -> str | Missing:
    """Return the text that the object `body` has under `name`, of the first member of that name.

    Parameters
    ----------
    body : bytes
        A JSON text, or its beginning.
    name : str
        Written without escapes in `body`, as all do.
    """
    if body.lstrip()[:1] not in (b"{", b""):
        return Missing.NOT_TEXT
    wanted, depth, at = b'"%b"' % name.encode(), 0, 0
    for _ in range(STEPS_MAX):
        token = _TOKEN.search(body, at)
        if token is None:
            return Missing.NOT_YET
        first, at = token[0][:1], token.end()
        if first != b'"':
            depth += 1 if first in _OPENING else -1
            if depth == 0:
                return Missing.NOT_THERE
        elif not token[1]:
            return Missing.NOT_YET
        elif depth == 1:
            colon = _COLON.match(body, at)
            if colon is not None and colon[1]:  # so it is a name, and no value
                if token[0] == wanted:
                    return _text_at(body, colon.end())
                at = colon.end()
    return Missing.TOO_DEEP


def _text_at(body: bytes, at: int) -> str | Missing:
    text = _TOKEN.match(body, at)
    if text is None or text[0][:1] != b'"':
        return Missing.NOT_TEXT if at < len(body) else Missing.NOT_YET
    if not text[1]:
        return Missing.NOT_YET
    try:
        return msgspec.json.decode(text[0], type=str)
    except msgspec.DecodeError:
        return Missing.NOT_TEXT
