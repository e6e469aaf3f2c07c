"""Gives free slots to those who wait, and to copies of those who are late; follows what replicas offer."""

from dataclasses import replace
from math import inf

from autoscaler.dispatch.actions import Action, Hedge, Send, SendBatch
from autoscaler.dispatch.place import Place
from autoscaler.dispatch.placement import place_of
from autoscaler.dispatch.slots import Lease
from autoscaler.dispatch.state import DispatcherState
from autoscaler.domain import Mergeable, Request


class Matching(DispatcherState):
    """What a dispatcher does with slots."""

    def _match(self, now: float, actions: list[Action]) -> None:
        """Lease free slots to those who wait, in their order, until either has run out."""
        while self._slots.slots_free:
            place = self._queue.pop(now, self._may_start)
            if place is None:
                return
            self._send(_as_sent(place), now, actions)

    def _send(self, request: Request, now: float, actions: list[Action]) -> bool:
        """Send `request` where it goes best, if there is a free slot for it."""
        replica_id = None
        if request.tried or (request.affinity_key and self._options.affinity is not None):
            replica_id = place_of(request, self._slots.replicas, self._options.affinity)
            if replica_id is None:
                return False
        lease = self._slots.take(request, now, replica_id)
        if lease is None:
            return False
        self._lines[request.priority_class].running += lease.slots
        if self._offering.learns:
            self._offering.call_started(lease.replica_id, lease.request_id, now)
        if self._hedging is not None and request.hedgeable:
            self._hedging.started(lease, now)
        if request.merge is not None and self._slots.takes_batches(lease):
            if self._queue.waiting and (mates := self._take_mates(request.merge, lease, now)):
                actions.append(self._batch(request, request.merge, lease, mates, now))
                return True
            self._batches.began(lease.number, request.merge, lease.slots, lease.replica_id, now)
        actions.append(Send(request, lease))
        return True

    def _take_mates(self, merge: Mergeable, lease: Lease, now: float) -> list[Request]:
        """Take out of the queue who shall share the call of a lease that was just taken."""
        waiting = self._queue.rows_waiting(merge)
        if not waiting:
            return []
        most = self._batches.rows(merge, lease.replica_id, merge.rows + waiting, now)
        room = min(self._slots.room_beside(lease), most - merge.rows)
        mates: list[Request] = []
        while room > 0 and (place := self._queue.pop_mate(merge, room)) is not None:
            mate = _as_sent(place)
            rows = 1 if mate.merge is None else mate.merge.rows
            self._lines[mate.priority_class].running += rows  # so that its class stays below its ceiling
            mates.append(mate)
            room -= rows
        return mates

    def _batch(
        self, request: Request, merge: Mergeable, lease: Lease, mates: list[Request], now: float
    ) -> SendBatch:
        leases = self._slots.share(lease, mates, now)
        rows = sum(each.slots for each in leases)
        self._batches.began(leases[0].call, merge, rows, lease.replica_id, now)
        return SendBatch((request, *mates), tuple(leases))

    def _may_start(self, request: Request) -> bool:
        """Whether a slot is free where it may go; some slot is."""
        return not request.tried or place_of(request, self._slots.replicas, None) is not None

    def _hedge(self, lease: Lease, now: float, actions: list[Action]) -> None:
        """Send a copy of a request that is late to another replica, if a slot idles there."""
        held = self._slots.held(lease)
        if held is None or self._queue.waiting or not self._slots.slots_free or self._hedging is None:
            return
        first = held[1]
        copy = replace(first, id=f"{first.id}+hedge", hedgeable=False, tried=first.tried | {lease.replica_id})
        replica_id = place_of(copy, self._slots.replicas, None)
        if replica_id is None or replica_id in copy.tried or copy.id in self._slots.live:
            return
        if not self._hedging.take_token():
            return
        second = self._slots.take(copy, now, replica_id)
        if second is not None:
            self._lines[copy.priority_class].running += second.slots
            if self._offering.learns:
                self._offering.call_started(second.replica_id, second.request_id, now)
            actions.append(Hedge(copy, second, lease))

    def _offer(self, now: float, appeared: str | None = None) -> None:
        """Bring what replicas are offered with up to `now`; floors, ceilings and clocks follow."""
        self._replicas.offer(now, appeared)
        slots = self._slots.slots_ready
        for line in self._lines.values():
            line.follow(slots)
        if slots:
            self._queue.start_clocks(now)
        else:
            self._queue.stop_clocks(now)


def _as_sent(place: Place) -> Request:
    """Return the request of a place, with the deadline that it has by now."""
    request = place.request
    if place.stood and request.deadline < inf:
        return replace(request, deadline=place.expires_at)
    return request
