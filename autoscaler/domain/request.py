"""What the request path talks about: a request, how it may end, and why it may be refused."""

from collections.abc import Hashable
from enum import StrEnum
from math import inf

from autoscaler.domain.value import value

STANDARD = "standard"
"""The class of a request of which nothing else is known."""


@value
class Mergeable:
    """Says that a request may be served in one call with others, and with which."""

    bucket: Hashable
    """Only requests with equal buckets share a call."""
    rows: int = 1
    """So much of the call it fills [rows]."""
    rows_max: int = 1
    """So much its model takes in one call [rows]."""


@value
class Request:
    """One request from a client, as the queue sees it.

    Attributes
    ----------
    id : str
        Unique among the requests that are alive.
    arrived_at : float
        When it was accepted at the door [s, monotonic].
    deadline : float
        When it must have *started*, at the latest [s, monotonic]; a wait beyond it ends it. While no replica
        is there, its clock stands for a while.
    body_bytes : int
        Memory its body holds, or will hold, while it waits [bytes].
    priority_class : str
        Name of one of the classes of its pool's queue; another name is a broken contract.
    tenant : str
        Whose it is; tenants of one class take turns. Where nobody tells tenants apart, all have the same.
    service_time : float
        Predicted time in its slot [s]; 0 if nobody can tell, and the mean of what was seen is taken.
    affinity_key : str
        Requests with the same key go to the same replica where they can: a session, or a digest of the
        beginning of the prompt. Empty for none.
    hedgeable : bool
        A second copy of it may run elsewhere at the same time: short, unary, without side effects.
    tried : frozenset of str
        Ids of replicas it must not be given while there is another; `Returned` adds to it.
    given_up_at : float
        When its client gives up, whatever keeps it waiting [s, monotonic]; not before the deadline.
    merge : Mergeable or None
        With whom it may share a call; None: with nobody.
    """

    id: str
    arrived_at: float
    deadline: float
    body_bytes: int = 0
    priority_class: str = STANDARD
    tenant: str = ""
    service_time: float = 0.0
    affinity_key: str = ""
    hedgeable: bool = False
    tried: frozenset[str] = frozenset()
    given_up_at: float = inf
    merge: Mergeable | None = None


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
    QUEUE_SECONDS_FULL = "queue_seconds_full"
    """As much predicted service time waits as may."""
    PREDICTED_LATE = "predicted_late"
    """By the queueing model it would start past its deadline, so it was not let in."""
    DEADLINE_PASSED = "deadline_passed"
    """It waited past its deadline while replicas were there, all busy."""
    NO_CAPACITY = "no_capacity"
    """It waited past its deadline while no replica was there."""
    NO_REPLICA_IN_TIME = "no_replica_in_time"
    """No replica is there, and the next one is known to come too late for it, so it waits no longer."""
    RETRIES_SPENT = "retries_spent"
    """It did not execute, and so many others did not lately that none is tried again for a while."""
    CLOSING = "closing"
    """The program is draining and takes nothing new."""
