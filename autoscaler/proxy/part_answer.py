"""One client's part of the answer of a call that others shared; what a `Call` is to whoever passes it on."""

from collections.abc import Callable

from multidict import CIMultiDict

from autoscaler.proxy.shared_call import Part


class PartAnswer:
    """An answer that is here in full. Its slot is free already."""

    status = 200
    reason: str | None = None
    switched = False
    begun = True

    def __init__(self, part: Part) -> None:
        self._body = part.body
        self.headers: CIMultiDict[str] = CIMultiDict(part.fields)
        """What of its head is passed on."""
        self.headers["Content-Length"] = str(len(part.body))
        self.whole = False
        """Whether it has been read."""

    def when_received(self, tell: Callable[[], None]) -> None:
        """Call `tell` now."""
        tell()

    async def next_piece(self) -> bytes:
        """Return all of it, once."""
        body, self._body, self.whole = self._body, b"", True
        return body

    def end(self) -> None:
        """Do nothing: there is no connection."""
