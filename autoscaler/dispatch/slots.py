"""The ledger of slots: which request holds which slot of which replica.

A slot is taken by a lease when a request is dispatched, never earlier or later, and given back once,
however the call ended. Nothing else in the program counts load: in-flight, busy and free slots, load
of a replica are all read from here. A live lease stands in one index, by request, and is counted once at
its replica; `take` and `free` write both together, and nobody else writes either, so neither drifts.

A replica is *ready* (takes requests), *draining* (finishes what it holds) or *lost* (gone, or not
ready: what it holds breaks, and each broken call gives its lease back). A lost one is forgotten with
its last lease, not before: should it be ready again while calls still run on it, these count. A ready one
has the slots that it was last offered with; that may be none, for `offering.py` withholds some.

Where a replica serves requests in batches, a slot is one row of a batch, and a call is a batch: leases of one
call hold as many slots as their requests have rows. Such a replica takes so many calls at a time, and while
they run it has no slot to give, however few rows are in them: whoever comes next makes up the next batch.

The replica that gets the next request is the least loaded by fraction; on equal fractions the one with
the fewest requests, then the one that has gone longest since it last gave back a slot (a new one: since
it came). It comes from a heap of offers. Each ready replica with a free slot has one offer that is valid;
a change makes another, and the old one is garbage: skipped at the top, swept out when it outweighs the rest.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import count

from autoscaler.dispatch.lease import Lease, ReplicaLoad, ReplicaState
from autoscaler.domain import Request

__all__ = ["Held", "Lease", "ReplicaLoad", "ReplicaState", "Slots"]

_Offer = tuple[float, int, int, "_Replica"]
"""Load as a fraction, requests, serial of the last slot given back, which no two replicas share, and the
replica. The least is the best."""

_GARBAGE_MIN = 64
"""So many dead offers may lie in the heap however few replicas there are; a sweep shall be worth it."""


@dataclass(slots=True, eq=False)
class _Replica:
    id: str
    slots: int
    idle_since: int
    state: ReplicaState = ReplicaState.READY
    busy: int = 0
    offer: _Offer | None = None
    calls: int = 0
    calls_max: int | None = None
    """None: every slot takes a call."""

    @property
    def room(self) -> int:
        """Slots that a request could have now [1]."""
        if self.calls_max is not None and self.calls >= self.calls_max:
            return 0
        return max(0, self.slots - self.busy) if self.state is ReplicaState.READY else 0


Held = tuple[Lease, Request, float, _Replica]
"""A live lease, the request that holds it, since when [s], and where."""


class Slots:
    """Leases slots of ready replicas, least loaded first. Each lease ends exactly once."""

    def __init__(self) -> None:
        self._replicas: dict[str, _Replica] = {}
        self.live: dict[str, Held] = {}
        """Who holds a slot, by id of the request."""
        self._offers: list[_Offer] = []
        self.leases_given = 0
        """So many in the life of this ledger [1]; the last one bears this number."""
        self._serials = count()
        self._sharing: dict[int, int] = {}
        """Live leases of each call that serves several requests."""
        self.slots_ready = 0
        """Slots that ready replicas are offered with, busy or free [1]."""
        self.slots_free = 0
        """Slots of ready replicas that a lease could take [1]."""
        self._frees_refused = 0

    # -- leases

    def take(self, request: Request, now: float = 0.0, replica_id: str | None = None) -> Lease | None:
        """Lease a slot to `request` at `now` [s]: of the least loaded replica, or of the one named.

        O(log replicas). None if no slot is free there. Whoever takes a lease owes one `free`. Raises
        ValueError if the request has one.
        """
        if request.id in self.live:
            raise ValueError(f"request {request.id!r} holds a slot already; free its lease first")
        offer = self._best_offer() if replica_id is None else self._replicas[replica_id].offer
        if offer is None:
            return None
        replica = offer[3]
        if replica.calls_max is not None:
            return self._lease(request, now, replica)
        self.leases_given = number = self.leases_given + 1
        lease = Lease(number, replica.id, request.id)
        self.live[request.id] = (lease, request, now, replica)
        replica.busy += 1
        replica.calls += 1
        self.slots_free -= 1
        self._renew_offer(replica)
        return lease

    def takes_batches(self, lease: Lease) -> bool:
        """Whether the replica of a live lease serves requests in batches."""
        return self.live[lease.request_id][3].calls_max is not None

    def room_beside(self, lease: Lease) -> int:
        """Slots that others could have in the call of a live lease that was just taken [1]."""
        replica = self.live[lease.request_id][3]
        return max(0, replica.slots - replica.busy)

    def share(self, lease: Lease, others: Sequence[Request], now: float) -> list[Lease]:
        """Let `others` share the call of a lease that was just taken; return all leases, its own first."""
        _, request, since, replica = self.live[lease.request_id]
        own = Lease(lease.number, replica.id, request.id, lease.number, lease.slots)
        self.live[request.id] = (own, request, since, replica)
        self._sharing[own.number] = 1
        return [own, *(self._lease(other, now, replica, own.number) for other in others)]

    def free(self, lease: Lease) -> Held | None:
        """Give a lease back, in O(log replicas); return who held it.

        None, and counted, if it is not live (any more).
        """
        held = self.live.get(lease.request_id)
        if held is None or (held[0] is not lease and held[0] != lease):
            self._frees_refused += 1
            return None
        del self.live[lease.request_id]
        replica = held[3]
        before = replica.room
        replica.busy -= held[0].slots
        if self._call_is_over(held[0]):
            replica.calls -= 1
        replica.idle_since = next(self._serials)
        if replica.state is ReplicaState.READY:
            room = replica.room
            if room:
                self.slots_free += room - before
                self._renew_offer(replica)
        else:
            self._forget_if_over(replica)
        return held

    def shares(self, call: int) -> bool:
        """Whether a lease of this call is live, of a call that serves several requests."""
        return call in self._sharing

    # -- replicas

    def ready(self, replica_id: str, slots: int, calls_max: int | None = None) -> None:
        """Offer `slots` of a replica: new, known with other slots, or back from draining or loss.

        None, if all of them are other programs' now; it is ready all the same.

        One that serves requests in batches has a slot for each row, and takes `calls_max` batches at a time.
        Leases that still run on it keep their slots; where there are more of them than `slots`, it
        gets nothing new until enough are given back.
        """
        if slots < 0:
            raise ValueError(f"need slots >= 0, got {slots} for replica {replica_id!r}")
        replica = self._replicas.get(replica_id)
        if replica is None:
            replica = self._replicas[replica_id] = _Replica(replica_id, 0, next(self._serials))
        self._count(replica, -1)
        replica.calls_max = calls_max
        self._count(replica, 1)
        self._change(replica, slots, ReplicaState.READY)

    def offer(self, replica_id: str, slots: int) -> None:
        """Offer `slots` >= 0 of a known replica from now on, whatever its state."""
        replica = self._replicas[replica_id]
        self._change(replica, slots, replica.state)

    def drain(self, replica_id: str) -> None:
        """Give a ready replica nothing new. Of one that is not known, or lost, there is nothing to do."""
        replica = self._replicas.get(replica_id)
        if replica is not None and replica.state is ReplicaState.READY:
            self._change(replica, replica.slots, ReplicaState.DRAINING)

    def lose(self, replica_id: str) -> None:
        """Give a replica nothing new and forget it with its last lease. May be told of one not known."""
        replica = self._replicas.get(replica_id)
        if replica is not None:
            self._change(replica, replica.slots, ReplicaState.LOST)
            self._forget_if_over(replica)

    # -- what the ledger says

    @property
    def running(self) -> int:
        """Live leases, wherever they run [1]."""
        return len(self.live)

    @property
    def slots_busy(self) -> int:
        """Slots that live leases hold, wherever they run [1]."""
        return sum(replica.busy for replica in self._replicas.values())

    @property
    def frees_refused(self) -> int:
        """How often a lease was given back that was not live [1]; above 0 a driver has a fault."""
        return self._frees_refused

    @property
    def replicas(self) -> tuple[ReplicaLoad, ...]:
        """Every replica that is known, in the order in which they came."""
        return tuple(self._loads())

    def busy_by_replica(self) -> dict[str, int]:
        """Live leases by replica id, of every replica that is known [1]."""
        return {replica.id: replica.busy for replica in self._replicas.values()}

    def live_leases(self) -> tuple[Lease, ...]:
        """Every lease that is not given back yet, in order of dispatch."""
        return tuple(held[0] for held in self.live.values())

    def held(self, lease: Lease) -> Held | None:
        """Who holds a lease; None if it is not live (any more)."""
        held = self.live.get(lease.request_id)
        return held if held is not None and held[0] == lease else None

    def __repr__(self) -> str:
        ready = self.slots_ready
        busy = ready - self.slots_free
        return f"<Slots busy={busy}/{ready} running={self.running} replicas={len(self._replicas)}>"

    # -- calls that serve several

    def _lease(self, request: Request, now: float, replica: _Replica, call: int = 0) -> Lease:
        """Lease to `request` the slots for its rows, in a `call` that there is (0: in one of its own)."""
        self.leases_given = number = self.leases_given + 1
        slots = 1 if request.merge is None else request.merge.rows
        lease = Lease(number, replica.id, request.id, call, slots)
        self.live[request.id] = (lease, request, now, replica)
        before = replica.room
        replica.busy += slots
        if call:
            self._sharing[call] += 1
        else:
            replica.calls += 1
        self.slots_free += replica.room - before
        self._renew_offer(replica)
        return lease

    def _call_is_over(self, lease: Lease) -> bool:
        """Take a lease off its call; return whether that was the last one of it."""
        if not lease.call:
            return True
        left = self._sharing[lease.call] - 1
        if left:
            self._sharing[lease.call] = left
        else:
            del self._sharing[lease.call]
        return not left

    # -- offers

    def _loads(self) -> Iterator[ReplicaLoad]:
        for replica in self._replicas.values():
            takes_no_call = replica.calls_max is not None and replica.calls >= replica.calls_max
            yield ReplicaLoad(replica.id, replica.state, replica.slots, replica.busy, takes_no_call)

    def _best_offer(self) -> _Offer | None:
        offers = self._offers
        while offers:
            offer = offers[0]
            if offer[3].offer is offer:
                return offer
            heappop(offers)
        return None

    def _renew_offer(self, replica: _Replica) -> None:
        """Replace the offer of a replica after any change of it; none while it has no free slot."""
        busy = replica.busy
        if not replica.room:
            replica.offer = None
            return
        offers = self._offers
        replica.offer = offer = (busy / replica.slots, busy, replica.idle_since, replica)
        heappush(offers, offer)
        if len(offers) > 2 * len(self._replicas) + _GARBAGE_MIN:
            self._offers = [known.offer for known in self._replicas.values() if known.offer is not None]
            heapify(self._offers)

    def _change(self, replica: _Replica, slots: int, state: ReplicaState) -> None:
        """Make a replica what it is now, and the sums over all ready ones with it."""
        self._count(replica, -1)
        replica.slots, replica.state = slots, state
        self._count(replica, 1)
        self._renew_offer(replica)

    def _count(self, replica: _Replica, sign: int) -> None:
        if replica.state is ReplicaState.READY:
            self.slots_ready += sign * replica.slots
            self.slots_free += sign * replica.room

    def _forget_if_over(self, replica: _Replica) -> None:
        if replica.state is ReplicaState.LOST and not replica.busy:
            del self._replicas[replica.id]
