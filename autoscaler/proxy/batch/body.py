"""The body of a merged request: all of it is there, and it can be sent again."""

from collections.abc import Callable

from autoscaler.proxy.answers import Refusal


class WholeBody:
    """What an upstream call asks of a body."""

    complete = True
    consumed = False
    failure: Refusal | None = None
    on_progress: Callable[[], None] | None = None

    def __init__(self, data: bytes) -> None:
        self._data = data

    def payload(self) -> bytes:
        """Return what to send."""
        return self._data
