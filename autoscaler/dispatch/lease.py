"""What the ledger of slots gives out, and what it says of a replica."""

from enum import StrEnum

from autoscaler.domain.value import value


@value
class Lease:
    """The right to use one slot of one replica, from dispatch until it is given back, once."""

    number: int
    """Unique for the life of the dispatcher."""
    replica_id: str
    request_id: str
    call: int = 0
    """Leases with the same number here are served by one call; 0: by a call of its own."""
    slots: int = 1
    """How many slots it holds: the rows of its request, where a replica serves requests in batches [1]."""


class ReplicaState(StrEnum):
    """What a replica may be given."""

    READY = "ready"
    """New requests."""
    DRAINING = "draining"
    """Nothing new; what it holds it finishes."""
    LOST = "lost"
    """Nothing; it stays known only until its last lease is given back."""


@value
class ReplicaLoad:
    """One replica as the ledger sees it now."""

    replica_id: str
    state: ReplicaState
    slots: int
    """Requests it is offered for at a time [1]."""
    busy: int
    """Slots that live leases hold on it [1]; above `slots` only after `slots` was lowered."""
    takes_no_call: bool = False
    """Whether it gets nothing, free slots or not: as many calls run on it as it takes at a time."""

    @property
    def free(self) -> int:
        """Slots that a request could have now [1]."""
        if self.takes_no_call or self.state is not ReplicaState.READY:
            return 0
        return max(0, self.slots - self.busy)
