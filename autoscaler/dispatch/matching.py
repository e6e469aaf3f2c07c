"""Gives free slots to those who wait, and to copies of those who are late; follows what replicas offer."""

from dataclasses import replace
from math import inf

from autoscaler.dispatch.actions import Action, Hedge, Send
from autoscaler.dispatch.placement import place_of
from autoscaler.dispatch.slots import Lease
from autoscaler.dispatch.state import DispatcherState
from autoscaler.domain import Request


class Matching(DispatcherState):
    """What a dispatcher does with slots."""

    def _match(self, now: float, actions: list[Action]) -> None:
        """Lease free slots to those who wait, in their order, until either has run out."""
        while self._slots.slots_free:
            place = self._queue.pop(now, self._may_start)
            if place is None:
                return
            request = place.request
            if place.stood and request.deadline < inf:
                request = replace(request, deadline=place.expires_at)
            self._send(request, now, actions)

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
        self._lines[request.priority_class].running += 1
        if self._hedging is not None and request.hedgeable:
            self._hedging.started(lease, now)
        actions.append(Send(request, lease))
        return True

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
            self._lines[copy.priority_class].running += 1
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
