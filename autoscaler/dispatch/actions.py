"""What the dispatcher tells its driver to do, in this order."""

from autoscaler.dispatch.slots import Lease
from autoscaler.domain import DropReason, Request
from autoscaler.domain.value import value


@value
class Send:
    """Forward the request to the replica of the lease. When the call is over, report `SlotFreed`.

    After a `Returned` that excluded a replica, `request` is a copy that says so in `tried`: keep this one.
    """

    request: Request
    lease: Lease


@value
class SendBatch:
    """Forward several requests to one replica in one call, the first of them the one whose turn it was.

    Each has a lease of its own, and each lease ends with its own `SlotFreed` or `Returned`: early for one
    whose client leaves. The replica gets nothing in their place before the last of them.
    """

    requests: tuple[Request, ...]
    leases: tuple[Lease, ...]


@value
class Drop:
    """Tell the client that its request will not be served, and why."""

    request: Request
    reason: DropReason
    retry_after: float | None = None
    """For one that was refused or found no replica: when, from now, it would be let in and start in time, by
    the queueing model [s]. Round up, never down. None if nobody can tell."""


@value
class Preempt:
    """Cancel the upstream call of a lease whose answer has not begun, then report `Returned`.

    If its first byte comes before that, do nothing: the call goes on, and ends with its own `SlotFreed`.
    Only leases of which `AwaitsFirstByte` was reported are named, each at most once.
    """

    lease: Lease


@value
class Hedge:
    """Send a second copy of a request that takes long, on a slot that idles.

    `request` is the copy, with an id of its own; `lease` is its slot, which ends with its own `SlotFreed`,
    like every other. The answer that begins first goes to the client; end the other call, and report its
    lease as `SlotFreed` with `CallEnd.INCONCLUSIVE`. If the first call is over when this action is performed,
    report `SlotFreed` at once. A copy is never `Returned`.
    """

    request: Request
    lease: Lease
    of: Lease
    """The lease of the first call."""


@value
class HandOver:
    """Report the request as `TakenOver` to the dispatcher whose slot was offered; it has left this one.

    `request` has the deadline that it has by now, and is merged with nobody there.
    """

    request: Request


Action = Send | SendBatch | Drop | Preempt | Hedge | HandOver
