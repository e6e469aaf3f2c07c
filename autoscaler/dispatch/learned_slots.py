"""How many requests one replica does well with at a time, learned while it serves.

Model: a request takes s(b) = alpha + beta b when b of them, itself included, are in the replica, in the mean over
its service. The slots are the largest b with s(b) within the objective. b is measured as the integral of the
requests in service over the time of a call, divided by that time; so calls that began under other slots count
for what they saw.

    a call was served ──▶ (b, its time) ──▶ the line ──▶ a decision after each generation of calls

*Objective.* The mean service time, or the mean time per token where tokens are known. Without either a request
may take `STRETCH` times what it takes alone: as many slots as there are workers behind a server that has some,
few for one that works one by one, and a good part of what a batching one can do.

*Caution.* From a few slots on they grow by doubling at most, and only where the replica was nearly full: what
is quick at low load tells nothing of high load. They shrink where the replica was full, or held more than it
should. A replica that idles learns nothing, and forgets nothing. The first `WARM_UP` calls of a fresh one are
not learned from, for it compiles and fills its caches. Between growing and shrinking lies a margin, and close
to the end the steps are halved, so that noise in the times does not become noise in the slots.
"""

from dataclasses import dataclass
from math import ceil, floor, inf

from autoscaler.dispatch.learned_line import GROWTH_MAX, LearnedLine

STRETCH = 2.0
"""Without an objective: a request may take so many times as long as alone [1]."""
WARM_UP = 10
"""The first calls of a fresh replica tell nothing [1]."""
GENERATION_MIN = 16
"""Between two decisions so many calls are served, or as many as there are slots [1]."""
NEARLY_FULL = 0.6
"""From this share of its slots on a replica tells whether it could have more [1]."""
SETTLED = 1.5
"""Nearer than by this factor to what they shall be, slots go half the way [1]."""
MARGIN = 0.05
"""They grow only where the objective would hold with this share to spare, and shrink where it is missed by as
much [1]."""

_OVERTAKING_MAX = 8  # calls that wait for one that began earlier, for each that runs
_REMEMBERED = 256  # services of one concurrency; single requests vary more than batches


@dataclass(frozen=True, slots=True)
class SlotOptions:
    """What the slots that are learned shall keep."""

    service_time: float | None = None
    """Mean time of a request in its slot [s]; None: twice what it takes alone."""
    token_time: float | None = None
    """Mean time from one token of an answer to the next [s], for servers whose tokens are known; it is learned
    from instead of the service time. None: service times are."""
    slots_max: int = 256
    """Never more [1]: memory of the server, and of this proxy, is finite."""

    def __post_init__(self) -> None:
        for name in ("service_time", "token_time"):
            seconds = getattr(self, name)
            if seconds is not None and not seconds > 0:
                raise ValueError(f"need {name} > 0, got {seconds}")
        if self.service_time is not None and self.token_time is not None:
            raise ValueError("service_time and token_time are two objectives; give one of them")
        if self.slots_max < 1:
            raise ValueError(f"need slots_max >= 1, got {self.slots_max}")

    @property
    def has_objective(self) -> bool:
        """Whether it is said how long a request or a token may take."""
        return self.service_time is not None or self.token_time is not None


@dataclass(slots=True)
class _Call:
    began_at: float
    area: float
    """Integral of the requests in service up to its beginning [s]."""
    seen: tuple[float, float] | None = None
    """If it was served: the concurrency [1], and what is compared with the objective [s]."""
    is_over: bool = False


class LearnedSlots:
    """Learns the slots of one replica, which begins with `slots` of them at `now` [s].

    `slots_max` is what the server itself says that it can do; None if it does not say.
    """

    def __init__(self, options: SlotOptions, slots: int, now: float, *, slots_max: int | None = None) -> None:
        self._options = options
        self._slots_max = min(options.slots_max, slots_max or options.slots_max)
        self.slots = min(slots, self._slots_max)
        """As many as it shall have now [1]."""
        self.line = LearnedLine(_REMEMBERED)
        self._calls: dict[int, _Call] = {}
        """Those that run, and those that wait to be learned from, in the order in which they began."""
        self._outlived: set[int] = set()
        """Those that run for so long that nobody waits for them any more."""
        self._running = 0
        self._area, self._area_at = 0.0, now
        self._served = 0
        self._changed_at = self._settled_at = inf
        self._seen, self._seen_sum = 0, 0.0

    def started(self, number: int, now: float) -> None:
        """A call of this number began."""
        self._advance(now)
        self._running += 1
        self._calls[number] = _Call(now, self._area)

    def ended(self, number: int, now: float, *, served: bool) -> bool:
        """A call is over; return whether the slots are others now."""
        call = self._calls.get(number)
        if call is None:
            if number not in self._outlived:
                return False
            self._outlived.remove(number)
        elif call.is_over:
            return False
        self._advance(now)
        self._running -= 1
        if call is not None:
            call.is_over = True
            if served and now > call.began_at:
                seconds = now - call.began_at
                call.seen = (self._area - call.area) / seconds, seconds
                self._served += 1
                if self._served == WARM_UP:
                    self._changed_at = now
        return self._learn(now)

    def _advance(self, now: float) -> None:
        self._area += self._running * (now - self._area_at)
        self._area_at = now

    def _learn(self, now: float) -> bool:
        """Learn from the calls that are over, as far as none still runs that began earlier."""
        while self._calls:
            number, call = next(iter(self._calls.items()))
            if self._settled_at == inf and call.began_at >= self._changed_at:
                self._settled_at = now
            if not call.is_over and len(self._calls) <= _OVERTAKING_MAX * self._running:
                return False
            del self._calls[number]
            if not call.is_over:
                self._outlived.add(number)
            elif call.seen is not None and call.began_at >= self._settled_at and self._observe(*call.seen, now):
                return True
        if self._settled_at == inf and self._changed_at < inf:
            self._settled_at = now
        return False

    def _observe(self, concurrency: float, seconds: float, now: float) -> bool:
        self.line.observe(max(1, round(concurrency)), seconds, now)
        self._seen += 1
        self._seen_sum += concurrency
        return self._seen >= max(GENERATION_MIN, self.slots) and self._decide(now)

    def _decide(self, now: float) -> bool:
        """Look at the line after a generation of calls; return whether the slots are others now."""
        held = self._seen_sum / self._seen
        self._seen, self._seen_sum = 0, 0.0
        objective = self._objective()
        if objective is None:
            return False
        more, less = (
            min(self.line.largest_within(share * objective, self._slots_max), GROWTH_MAX * self.slots)
            for share in (1 - MARGIN, 1 + MARGIN)
        )
        full = NEARLY_FULL * self.slots
        if more > self.slots and held >= full:
            self.slots = _towards(self.slots, more)
        elif less < self.slots and held >= min(full, less / GROWTH_MAX):
            self.slots = _towards(self.slots, less)
        else:
            return False
        self._changed_at, self._settled_at = now, inf
        return True

    def _objective(self) -> float | None:
        said = self._options.service_time or self._options.token_time
        if said is not None:
            return said
        alone = self.line.measured(1) or self.line.seconds(1)
        return None if alone is None else STRETCH * alone

    def __repr__(self) -> str:
        return f"<LearnedSlots {self.slots} running={self._running} {self.line!r}>"


def _towards(slots: int, wanted: int) -> int:
    """Return the next number on the way: at once if it is far, half the way if it is near."""
    if SETTLED * min(slots, wanted) < max(slots, wanted):
        return wanted
    half = (wanted - slots) / 2
    return slots + (ceil(half) if half > 0 else floor(half))
