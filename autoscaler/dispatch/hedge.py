"""When a second copy of a request is worth sending: late ones only, onto idle slots only, within a budget.

A short request that takes far longer than its like has probably met a replica that is slow just now. A copy
elsewhere costs a slot that idles anyway, and the first answer counts. "Far longer" is a quantile of the
service times of hedgeable requests as measured, so about 1 - quantile of them are hedged and no rule of thumb
about seconds is needed; a budget holds the copies to a share of all, should everything turn slow at once.

Nobody who waits ever stands behind a copy: while somebody does, none is sent.
"""

from bisect import bisect_left, insort
from collections import deque
from dataclasses import dataclass
from heapq import heappop, heappush
from math import ceil, inf

from autoscaler.dispatch.slots import Held, Lease


@dataclass(frozen=True, slots=True)
class HedgeOptions:
    """Which requests are worth a second copy. Only those that are `Request.hedgeable`."""

    quantile: float = 0.95
    """Sent once its call has lasted longer than this fraction of its like, in (0, 1). Higher sends fewer."""
    delay_min: float = 0.02
    """Never sooner than this [s]: a copy that comes too late to win costs as much."""
    share: float = 0.05
    """Copies for each hedgeable request, at most [1]."""

    def __post_init__(self) -> None:
        if not 0 < self.quantile < 1:
            raise ValueError(f"need quantile in (0, 1), got {self.quantile}")
        if not self.delay_min >= 0:
            raise ValueError(f"need delay_min >= 0, got {self.delay_min}")
        if not 0 < self.share <= 1:
            raise ValueError(f"need share in (0, 1], got {self.share}")


_SEEN_MIN, _SEEN_MAX = 20, 200
"""The quantile is that of so many last service times [1]; of fewer than the first none is told."""

_TOKENS_MAX = 10.0
"""So many copies at once at most [1]."""


class Hedging:
    """Watches hedgeable calls; names those that are worth a copy."""

    def __init__(self, options: HedgeOptions) -> None:
        self._options = options
        self._seen: deque[float] = deque()
        self._sorted: list[float] = []
        self._running: dict[int, float] = {}
        self._due: list[tuple[float, int, Lease]] = []
        self._tokens = 0.0

    def started(self, lease: Lease, now: float) -> None:
        """A hedgeable call began at `now` [s]."""
        self._tokens = min(_TOKENS_MAX, self._tokens + self._options.share)
        delay = self.delay()
        if delay is not None:
            self._running[lease.number] = now
            heappush(self._due, (now + delay, lease.number, lease))

    def ended(self, held: Held, *, served: bool, now: float) -> None:
        """A hedgeable call is over; learn from it if it was `served`. Copies are not learned from."""
        self._running.pop(held[0].number, None)
        if not served:
            return
        self._seen.append(now - held[2])
        insort(self._sorted, now - held[2])
        if len(self._seen) > _SEEN_MAX:
            del self._sorted[bisect_left(self._sorted, self._seen.popleft())]

    def delay(self) -> float | None:
        """So long must a call have lasted [s]; None while too few were seen."""
        if len(self._sorted) < _SEEN_MIN:
            return None
        return max(
            self._options.delay_min, self._sorted[ceil(self._options.quantile * len(self._sorted)) - 1]
        )

    def next_due(self) -> float:
        """When the next call has lasted long enough [s]; infinity if none is watched."""
        while self._due and self._due[0][1] not in self._running:
            heappop(self._due)
        return self._due[0][0] if self._due else inf

    def take_due(self, now: float) -> list[Lease]:
        """Return those whose time has come at `now` [s]; each once, whether it can have a copy or not."""
        leases = []
        while self.next_due() <= now:
            lease = heappop(self._due)[2]
            del self._running[lease.number]
            leases.append(lease)
        return leases

    def take_token(self) -> bool:
        """Whether the budget has a copy left; it is spent then."""
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True
