"""A call to a replica that serves several requests, as each of them sees it.

What it is made of is the business of `proxy.batch`; whoever has a slot in one asks it for its part.
"""

from collections.abc import Mapping
from typing import Protocol

from autoscaler.domain.value import value


class Unmerged(Exception):
    """The call did not serve this request; it shall be served by a call of its own."""


@value
class Part:
    """What of the answer belongs to one request, in the form that its client asked for."""

    fields: Mapping[str, str]
    """Header fields that say how the body is to be read; none over gRPC."""
    body: bytes


class SharedCall(Protocol):
    """One call, and the requests that share it."""

    @property
    def rows(self) -> int:
        """How many rows it has, of all requests together [1]."""

    @property
    def merge_time(self) -> float:
        """How long it took to make one request of all [s]."""

    async def part(self, request_id: str) -> Part:
        """Wait for the answer; return what of it belongs to a request. Raises `CallBroke` or `Unmerged`."""

    def leave(self, request_id: str) -> None:
        """Take a request off the call; the others are not touched. The last one ends the call."""
