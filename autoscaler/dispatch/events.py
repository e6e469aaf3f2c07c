"""What can happen on the request path. The driver reports each; the dispatcher answers with actions.

A call of a lease is over with exactly one `SlotFreed` or `Returned`, which also says how it ended: that is
what health and the mean service time are learned from. Events marked *optional* switch on what they serve;
a driver that never reports them loses that, and nothing else.
"""

from enum import StrEnum

from autoscaler.dispatch.slots import Lease
from autoscaler.domain import Request
from autoscaler.domain.value import value


class CallEnd(StrEnum):
    """How the upstream call of a lease ended, as far as its replica is to blame or to praise."""

    SERVED = "served"
    """The server answered in full, with any status that is no failure of its own (also 4xx): its time in the
    slot is a service time, and the replica is well."""
    INCONCLUSIVE = "inconclusive"
    """It says nothing about the replica: the client left, the deadline came, the call was preempted or lost
    to its hedge, or the server said that it is busy (429, 503, RESOURCE_EXHAUSTED: report `Backpressure`)."""
    SERVER_FAILED = "server_failed"
    """The server answered with a failure of its own: 500, 502, 504, gRPC INTERNAL, UNKNOWN, DATA_LOSS."""
    BROKE = "broke"
    """The connection broke, fell silent for too long, or spoke no protocol."""
    REFUSED = "refused"
    """No connection came about, so nothing executed."""


@value
class Arrived:
    """A request is at the door."""

    request: Request


@value
class Cancelled:
    """The client of a *waiting* request left. (Of one in service: end the call, then `SlotFreed`.)"""

    request_id: str


@value
class SlotFreed:
    """The upstream call of a lease is over. Exactly once for each `Send` and `Hedge`."""

    lease: Lease
    end: CallEnd = CallEnd.SERVED


@value
class Returned:
    """The call of a lease provably did not execute, or was preempted: its request waits again.

    In the place of `SlotFreed`. It waits first in its class; its deadline still holds, and no bound refuses
    it. The answer may be a `Drop`: past its deadline, or `RETRIES_SPENT` when the retry budget is empty
    (a preempted one costs nothing).
    """

    lease: Lease
    request: Request
    """The one that was sent."""
    end: CallEnd = CallEnd.INCONCLUSIVE
    exclude: bool = False
    """Never again on this replica while there is another ready one that it has not tried. Set it unless the
    replica is not to blame (a reused connection that had gone stale)."""
    alone: bool = False
    """Its call, which it shared with others, failed: it shall be served by a call of its own from now on.
    That may happen once in its life, so it takes nothing from the retry budget."""


@value
class AwaitsFirstByte:
    """Optional, for preemption: the call of a lease could be cancelled now, and its request sent again.

    Nothing of an answer has come, and the body can be replayed. Report `FirstByte` when that ends; the end
    of the call ends it too.
    """

    lease: Lease


@value
class FirstByte:
    """Optional, for preemption: the answer of a lease has begun; it is not preempted any more."""

    lease: Lease


@value
class Backpressure:
    """Optional: a replica said that it is busy (429, 503, RESOURCE_EXHAUSTED). No fault of its health.

    Its slots are cut. Report it before the `SlotFreed` or `Returned` of the call that was told so.
    """

    replica_id: str
    retry_after: float = 0.0
    """From now, as the server said [s]; 0 if it did not. Nothing new goes there until then, unless no other
    replica has slots to offer."""


@value
class Probed:
    """Optional: an active probe of a ready replica, through the port that serves, was answered or not."""

    replica_id: str
    ok: bool


@value
class ReplicaReady:
    """A replica passed its readiness probe, is ready again, or is taken back from draining."""

    replica_id: str
    slots: int
    """0 while other programs have all of them."""
    calls_max: int | None = None
    """Calls it takes at a time, if one call may serve several requests; then each slot is for a row of one.
    None: each slot takes a call, and requests are never merged."""
    learns_from: int | None = None
    """Begin with so many slots, and learn how many it does well with, up to `slots`. None: it has `slots`."""


@value
class Paced:
    """Optional: a request, which may be over, got its tokens so quickly. Slots may be learned from it."""

    request_id: str
    token_time: float
    """Mean time from one token to the next [s]."""


@value
class ReplicaDraining:
    """A replica shall get nothing new; what it holds it finishes."""

    replica_id: str


@value
class ReplicaLost:
    """A replica is gone or not ready. Leases on it end by their own `SlotFreed`, as their calls break."""

    replica_id: str


@value
class ReplicaExpected:
    """Optional: when the next replica will be ready, as far as anybody knows. The last word counts.

    While there is none, who cannot wait so long is refused at once, also of those who wait already, and told
    when to come back. A `ReplicaReady` ends it.
    """

    at: float | None
    """[s, monotonic]; None if nobody knows."""


@value
class SlotElsewhere:
    """Optional: the pool that stands in for this one has a slot that nobody there waits for.

    Whoever's turn it is goes there, with its `HandOver`, if its class is one of those that may start there.
    """

    classes: frozenset[str]


@value
class TakenOver:
    """In the place of `Arrived`: a request that another pool has let in, and handed over.

    No bound refuses it.
    """

    request: Request


@value
class Closing:
    """The program drains: nothing new is let in; what waits and what runs goes on."""


@value
class Tick:
    """Nothing happened, but a time named by `next_wakeup` has come."""


Event = (
    Arrived
    | Cancelled
    | SlotFreed
    | Returned
    | AwaitsFirstByte
    | FirstByte
    | Backpressure
    | Probed
    | Paced
    | ReplicaReady
    | ReplicaDraining
    | ReplicaLost
    | ReplicaExpected
    | SlotElsewhere
    | TakenOver
    | Closing
    | Tick
)
