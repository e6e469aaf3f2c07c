"""What the request path talks about: a request, how it may end, and why it may be refused."""

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class Request:
    """One request from a client, as the queue sees it.

    Attributes
    ----------
    id : str
        Unique among the requests that are alive.
    arrived_at : float
        When it was accepted at the door [s, monotonic].
    deadline : float
        When it must have *started*, at the latest [s, monotonic]; a wait beyond it ends it.
    body_bytes : int
        Memory its body holds, or will hold, while it waits [bytes].
    """

    id: str
    arrived_at: float
    deadline: float
    body_bytes: int = 0


class Outcome(StrEnum):
    """How a request ended. Every request ends in exactly one of these."""

    COMPLETED = "completed"
    """The server answered in full, whatever its status."""
    FAILED = "failed"
    """The transport or the server broke before the answer was whole."""
    CANCELLED = "cancelled"
    """The client left."""
    REJECTED = "rejected"
    """Refused at the door."""
    EXPIRED = "expired"
    """Its deadline passed: while it waited, or while it was served."""


class DropReason(StrEnum):
    """Why the queue let go of a request without serving it."""

    QUEUE_FULL = "queue_full"
    """As many requests wait as may."""
    QUEUE_BYTES_FULL = "queue_bytes_full"
    """The bodies that wait hold as much memory as they may."""
    DEADLINE_PASSED = "deadline_passed"
    """It waited past its deadline while replicas were there, all busy."""
    NO_CAPACITY = "no_capacity"
    """It waited past its deadline while no replica was there."""
    CLOSING = "closing"
    """The program is draining and takes nothing new."""
