"""Taking a slot back for an urgent request from one that can do without its answer so far.

It happens only where it was asked for twice: the class that waits `preempts`, and the class that runs is
`preemptible` and less urgent. And only to calls of which the driver said that they await their first byte.
Of these the least urgent goes first, and among equals the one sent last, for it loses the least. Each
request that waits takes back one slot at most; a request loses its slot once at most, and never when it is
overdue, so that what is preempted is done in the end all the same.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from autoscaler.dispatch.class_line import ClassLine
from autoscaler.dispatch.slots import Lease
from autoscaler.domain import Request


@dataclass(frozen=True, slots=True)
class _Running:
    lease: Lease
    request: Request


class Preemption:
    """Knows which leases may be taken back, and which are being."""

    def __init__(self, lines: Mapping[str, ClassLine]) -> None:
        self._lines = lines
        self._preemptible: dict[int, _Running] = {}
        self._pending: dict[int, Lease] = {}
        self._spared: set[str] = set()

    def may_lose(self, lease: Lease, request: Request) -> None:
        """The call of `lease` awaits its first byte; note it if its class may lose its slot."""
        options = self._lines[request.priority_class].options
        if options.preemptible and request.id not in self._spared and lease.number not in self._pending:
            self._preemptible[lease.number] = _Running(lease, request)

    def keeps(self, lease: Lease) -> None:
        """The answer of `lease` has begun, or its call is over: it cannot lose its slot any more."""
        self._preemptible.pop(lease.number, None)
        self._pending.pop(lease.number, None)

    def pending(self, lease: Lease) -> bool:
        """Whether the slot of `lease` is being taken back."""
        return lease.number in self._pending

    def spare(self, request_id: str) -> None:
        """The request has lost its slot once; it does not again."""
        self._spared.add(request_id)

    def ended(self, request_id: str) -> None:
        """The request is over for good."""
        self._spared.discard(request_id)

    def wanted(self, now: float) -> list[Lease]:
        """Return the leases to take back at `now` [s], while no slot is free; each is named once."""
        leases: list[Lease] = []
        if not self._preemptible:
            return leases
        waiting = 0
        for line in self._lines.values():
            if line.options.preempts:
                waiting += line.waiting
                while len(self._pending) < waiting and (lease := self._next(line, now)) is not None:
                    leases.append(lease)
        return leases

    def _next(self, waiting: ClassLine, now: float) -> Lease | None:
        """Choose one for `waiting` and note it as pending."""
        candidates = [
            running
            for running in self._preemptible.values()
            if self._priority(running.request) > waiting.options.priority
            and not self._overdue(running.request, now)
        ]
        if not candidates:
            return None
        chosen = max(candidates, key=lambda each: (self._priority(each.request), each.lease.number)).lease
        del self._preemptible[chosen.number]
        self._pending[chosen.number] = chosen
        return chosen

    def _priority(self, request: Request) -> int:
        return self._lines[request.priority_class].options.priority

    def _overdue(self, request: Request, now: float) -> bool:
        return now >= request.arrived_at + self._lines[request.priority_class].options.starvation_bound
