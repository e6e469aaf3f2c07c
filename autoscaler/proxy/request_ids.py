"""The id by which a client, this proxy and a server speak of the same request."""

import re
import secrets
from itertools import count

_FORM = re.compile(r"[!-~]{1,128}")
_MASK = 2**64 - 1


class RequestIds:
    """Takes the ids that clients give, and makes those that they do not."""

    def __init__(self) -> None:
        self._own = count(secrets.randbits(64))

    def of(self, given: str | None) -> str:
        """Return the id that a client gave, if it is short and printable; else one that no other has."""
        if given is not None and _FORM.fullmatch(given):
            return given
        return f"{next(self._own) & _MASK:016x}"
