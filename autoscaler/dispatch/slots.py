"""The ledger of slots: which request holds which slot of which replica.

A slot is taken by a lease when a request is dispatched, never earlier or later, and given back once,
however the call ended. Nothing else in the program counts load: in-flight, busy and free slots, load
of a replica are all read from here. A live lease stands in two indexes, by request and by replica,
which `take` and `free` write and nobody else; every number is the size of one of them, so none drifts.

A replica is *ready* (takes requests), *draining* (finishes what it holds) or *lost* (gone, or not
ready: what it holds breaks, and each broken call gives its lease back). A lost one is forgotten with
its last lease, not before: should it be ready again while calls still run on it, these count.

The replica that gets the next request is the least loaded by fraction; on equal fractions the one with
the fewest requests, then the one that has gone longest since it last gave back a slot (a new one: since
it came). It comes from a heap of offers. Each ready replica with a free slot has one offer that is valid;
a change makes another, and the old one is garbage: skipped at the top, swept out when it outweighs the rest.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from heapq import heapify, heappop, heappush
from itertools import count

from autoscaler.domain import Request

_Offer = tuple[float, int, int, str]
"""Load as a fraction, requests, serial of the last slot given back, replica id. The least is the best."""

_GARBAGE_MIN = 64
"""So many dead offers may lie in the heap however few replicas there are; a sweep shall be worth it."""


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to use one slot of one replica, from dispatch until it is given back, once."""

    number: int
    """Unique for the life of the dispatcher."""
    replica_id: str
    request_id: str


class ReplicaState(StrEnum):
    """What a replica may be given."""

    READY = "ready"
    """New requests."""
    DRAINING = "draining"
    """Nothing new; what it holds it finishes."""
    LOST = "lost"
    """Nothing; it stays known only until its last lease is given back."""


@dataclass(frozen=True, slots=True)
class ReplicaLoad:
    """One replica as the ledger sees it now."""

    replica_id: str
    state: ReplicaState
    slots: int
    """Requests it serves at a time [1]."""
    busy: int
    """Leases that are live on it [1]; above `slots` only after `slots` was lowered."""


@dataclass(slots=True)
class _Replica:
    slots: int
    idle_since: int
    state: ReplicaState = ReplicaState.READY
    leases: set[int] = field(default_factory=set)
    offer: _Offer | None = None

    @property
    def free(self) -> int:
        return max(0, self.slots - len(self.leases)) if self.state is ReplicaState.READY else 0


class Slots:
    """Leases slots of ready replicas, least loaded first. Each lease ends exactly once."""

    def __init__(self) -> None:
        self._replicas: dict[str, _Replica] = {}
        self._live: dict[str, Lease] = {}
        self._offers: list[_Offer] = []
        self._lease_numbers = count(1)
        self._serials = count()
        self._frees_refused = 0

    # -- leases

    def take(self, request: Request) -> Lease | None:
        """Lease a slot of the least loaded replica to `request`; None if no slot is free.

        O(log replicas). Whoever takes a lease owes one `free`. Raises ValueError if the request has one.
        """
        if request.id in self._live:
            raise ValueError(f"request {request.id!r} holds a slot already; free its lease first")
        offer = self._best_offer()
        if offer is None:
            return None
        replica_id = offer[3]
        lease = Lease(next(self._lease_numbers), replica_id, request.id)
        self._live[request.id] = lease
        self._replicas[replica_id].leases.add(lease.number)
        self._renew_offer(replica_id)
        return lease

    def free(self, lease: Lease) -> bool:
        """Give a lease back, in O(log replicas). False, and counted, if it is not live (any more)."""
        if self._live.get(lease.request_id) != lease:
            self._frees_refused += 1
            return False
        del self._live[lease.request_id]
        replica = self._replicas[lease.replica_id]
        replica.leases.remove(lease.number)
        replica.idle_since = next(self._serials)
        self._forget_if_over(lease.replica_id)
        self._renew_offer(lease.replica_id)
        return True

    # -- replicas

    def ready(self, replica_id: str, slots: int) -> None:
        """Offer `slots` of a replica: new, known with other slots, or back from draining or loss.

        Leases that still run on it keep their slots; where there are more of them than `slots`, it
        gets nothing new until enough are given back.
        """
        if slots < 1:
            raise ValueError(
                f"need slots >= 1, got {slots} for replica {replica_id!r}; drain it to give it nothing"
            )
        replica = self._replicas.get(replica_id)
        if replica is None:
            replica = self._replicas[replica_id] = _Replica(slots, idle_since=next(self._serials))
        replica.slots = slots
        replica.state = ReplicaState.READY
        self._renew_offer(replica_id)

    def drain(self, replica_id: str) -> None:
        """Give a ready replica nothing new. Of one that is not known, or lost, there is nothing to do."""
        replica = self._replicas.get(replica_id)
        if replica is not None and replica.state is ReplicaState.READY:
            replica.state = ReplicaState.DRAINING
            self._renew_offer(replica_id)

    def lose(self, replica_id: str) -> None:
        """Give a replica nothing new and forget it with its last lease. May be told of one not known."""
        replica = self._replicas.get(replica_id)
        if replica is not None:
            replica.state = ReplicaState.LOST
            self._forget_if_over(replica_id)
            self._renew_offer(replica_id)

    # -- what the ledger says

    @property
    def running(self) -> int:
        """Live leases, wherever they run [1]."""
        return len(self._live)

    @property
    def any_free(self) -> bool:
        """Whether `take` would succeed; O(1) on average."""
        return self._best_offer() is not None

    @property
    def slots_ready(self) -> int:
        """Slots of ready replicas, busy or free [1]."""
        return sum(
            replica.slots for replica in self._replicas.values() if replica.state is ReplicaState.READY
        )

    @property
    def slots_free(self) -> int:
        """Slots of ready replicas that no lease holds [1]."""
        return sum(replica.free for replica in self._replicas.values())

    @property
    def frees_refused(self) -> int:
        """How often a lease was given back that was not live [1]; above 0 a driver has a fault."""
        return self._frees_refused

    @property
    def replicas(self) -> tuple[ReplicaLoad, ...]:
        """Every replica that is known, in the order in which they came."""
        return tuple(
            ReplicaLoad(replica_id, replica.state, replica.slots, len(replica.leases))
            for replica_id, replica in self._replicas.items()
        )

    def busy_by_replica(self) -> dict[str, int]:
        """Live leases by replica id, of every replica that is known [1]."""
        return {replica_id: len(replica.leases) for replica_id, replica in self._replicas.items()}

    def live_leases(self) -> tuple[Lease, ...]:
        """Every lease that is not given back yet, in order of dispatch."""
        return tuple(self._live.values())

    def holds(self, request_id: str) -> bool:
        """Whether a live lease belongs to this request; O(1)."""
        return request_id in self._live

    def __repr__(self) -> str:
        ready = self.slots_ready
        busy = ready - self.slots_free
        return f"<Slots busy={busy}/{ready} running={self.running} replicas={len(self._replicas)}>"

    # -- offers

    def _best_offer(self) -> _Offer | None:
        while self._offers:
            offer = self._offers[0]
            replica = self._replicas.get(offer[3])
            if replica is not None and replica.offer is offer:
                return offer
            heappop(self._offers)
        return None

    def _renew_offer(self, replica_id: str) -> None:
        """Replace the offer of a replica after any change of it; none while it has no free slot."""
        replica = self._replicas.get(replica_id)
        if replica is None:
            return
        busy = len(replica.leases)
        if replica.state is not ReplicaState.READY or busy >= replica.slots:
            replica.offer = None
            return
        replica.offer = (busy / replica.slots, busy, replica.idle_since, replica_id)
        heappush(self._offers, replica.offer)
        if len(self._offers) > 2 * len(self._replicas) + _GARBAGE_MIN:
            self._offers = [replica.offer for replica in self._replicas.values() if replica.offer is not None]
            heapify(self._offers)

    def _forget_if_over(self, replica_id: str) -> None:
        replica = self._replicas[replica_id]
        if replica.state is ReplicaState.LOST and not replica.leases:
            del self._replicas[replica_id]
