"""How many requests one replica does well with at a time, learned while it serves.

Model: a request takes s(b) = alpha + beta b when b of them, itself included, are in the replica, in the mean
over its service. The slots are the largest b with s(b) within the objective.

    calls of a settled time, in the order in which they began ──▶ (b, s) ──▶ the line ──▶ a decision
          ▲                                                                                  │
          └────────── settled again once all that began before the change are over ◀─────────┘

*Objective.* The mean service time; or the mean time from one token to the next, where tokens are known.
Without either, a request may take `STRETCH` times what it takes alone: twice as many slots as there are
workers behind a server that has some, two for one that works one by one, a good part of what one can do that
batches.

*Fairness to long calls.* Whatever is short is over first. So calls are learned from in the order in which
they began, not in which they ended, and a change of the slots starts a new sample; else each sample would be
of its quick ones, and times would look shorter than they are, by a quarter after a doubling.

*Caution.* Slots grow by doubling at most, and only where the replica was nearly full: what is quick at low
load tells nothing of high load. They shrink where the replica was full, or held more than it should. A
replica that idles learns nothing, and forgets nothing. The first `WARM_UP` calls of a fresh one are not
learned from, for it compiles and fills its caches. Between growing and shrinking lies a margin, and close to
the end the steps are halved, so that noise in the times does not become noise in the slots. With service
times as uneven as exponential ones, slots stay within a fifth of what is right.
"""

from dataclasses import dataclass
from math import ceil, floor, inf

from autoscaler.dispatch.learned_line import GROWTH_MAX, LearnedLine

STRETCH = 2.0
"""Without an objective: a request may take so many times as long as alone [1]."""
WARM_UP = 10
"""The first calls of a fresh replica tell nothing [1]."""
GENERATION_MIN = 16
"""A decision is based on so many calls, or as many as there are slots [1]."""
NEARLY_FULL = 0.6
"""From this share of its slots on a replica tells whether it could have more [1]."""
MARGIN = 0.05
"""Slots grow only where the objective would hold with this share to spare, and shrink where it is missed by
as much [1]."""
SETTLED = 1.5
"""Nearer than by this factor to what they shall be, they go half the way [1]."""

_OVERTAKING_MAX = 8  # calls kept behind one that began earlier, for each that runs
_REMEMBERED = 256  # times of one concurrency; single requests vary more than batches


@dataclass(frozen=True, slots=True)
class SlotOptions:
    """What slots that are learned shall keep."""

    service_time: float | None = None
    """Mean time of a request in its slot [s]; None: twice what it takes alone, unless there is a
    `token_time`. Take the longest that clients like: more slots serve more, each more slowly."""
    token_time: float | None = None
    """Mean time from one token of an answer to the next [s], of language models whose answers are streamed.
    It stands in the place of a service time, which differs from answer to answer. None: no such bound."""
    slots_max: int = 256
    """Never more on one replica [1]: the memory of a server is finite."""

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
        """Whether it is said how long a request, or a token, may take."""
        return self.service_time is not None or self.token_time is not None


@dataclass(slots=True)
class _Call:
    began_at: float
    area: float
    """Integral of the requests in service up to its beginning [s]."""
    seen: tuple[float, float] | None = None
    """If it was served: the concurrency [1], and its time [s]."""
    is_over: bool = False


class LearnedSlots:
    """Learns the slots of one replica.

    Parameters
    ----------
    options : SlotOptions
        What they shall keep.
    slots : int
        How many it begins with [1].
    now : float
        When it does [s].
    slots_max : int
        More it shall not have, whatever is learned: the server says so [1].
    """

    def __init__(self, options: SlotOptions, slots: int, now: float, slots_max: int) -> None:
        self._options = options
        self._slots_max = min(options.slots_max, slots_max)
        self.slots = min(slots, self._slots_max)
        """As many as it shall have now [1]."""
        self.line = LearnedLine(_REMEMBERED)
        self._calls: dict[str, _Call] = {}
        """Those that run, and those that wait to be learned from, in the order in which they began."""
        self._outlived: set[str] = set()
        """Those that run for so long that nobody waits for them any more."""
        self._unpaced: dict[str, tuple[float, float]] = {}
        """Those that are over, and whose tokens are not known yet: beginning [s], concurrency [1]."""
        self._running = 0
        self._area, self._area_at = 0.0, now
        self._served = 0
        self._changed_at = self._settled_at = inf
        self._seen, self._seen_sum = 0, 0.0

    @property
    def is_warm(self) -> bool:
        """Whether it has served enough to be learned from."""
        return self._served >= WARM_UP

    def bounded(self, slots_max: int) -> None:
        """The server says from now on that it takes no more than this."""
        self._slots_max = min(self._options.slots_max, slots_max)
        self.slots = min(self.slots, self._slots_max)

    def started(self, request_id: str, now: float) -> None:
        """The call of a request began."""
        self._advance(now)
        self._running += 1
        self._calls.pop(request_id, None)  # of one that was here before and has been returned
        self._calls[request_id] = _Call(now, self._area)

    def ended(self, request_id: str, now: float, *, served: bool) -> bool:
        """The call of a request is over; return whether the slots are others now."""
        call = self._calls.get(request_id)
        if (request_id not in self._outlived) if call is None else call.is_over:
            return False
        self._outlived.discard(request_id)
        self._advance(now)
        self._running -= 1
        if call is not None:
            call.is_over = True
            if served and now > call.began_at:
                self._note_served(request_id, call, now)
        return self._learn(now)

    def paced(self, request_id: str, token_time: float, now: float) -> bool:
        """A request got a token each `token_time` [s]; return whether the slots are others now."""
        began_at, concurrency = self._unpaced.pop(request_id, (-inf, 0.0))
        call = self._calls.get(request_id)
        if call is not None and not call.is_over and now > call.began_at:  # the last byte came before its end
            self._advance(now)
            began_at, concurrency = call.began_at, (self._area - call.area) / (now - call.began_at)
        return began_at >= self._settled_at and self._observe(concurrency, token_time, now)

    def _advance(self, now: float) -> None:
        self._area += self._running * (now - self._area_at)
        self._area_at = now

    def _note_served(self, request_id: str, call: _Call, now: float) -> None:
        seconds = now - call.began_at
        call.seen = (self._area - call.area) / seconds, seconds
        self._served += 1
        if self._served == WARM_UP:
            self._changed_at = now
        if self._options.token_time is not None:
            if len(self._unpaced) >= _OVERTAKING_MAX * self.slots:
                del self._unpaced[next(iter(self._unpaced))]
            self._unpaced[request_id] = call.began_at, call.seen[0]

    def _learn(self, now: float) -> bool:
        """Learn from the calls that are over, as far as none still runs that began earlier."""
        while self._calls:
            request_id, call = next(iter(self._calls.items()))
            if self._settled_at == inf and call.began_at >= self._changed_at:
                self._settled_at = now
            if not call.is_over and len(self._calls) <= _OVERTAKING_MAX * self._running:
                return False
            del self._calls[request_id]
            if not call.is_over:
                self._outlived.add(request_id)
            elif self._tells(call) and call.seen is not None and self._observe(*call.seen, now):
                return True
        if self._settled_at == inf and self._changed_at < inf:
            self._settled_at = now
        return False

    def _tells(self, call: _Call) -> bool:
        return call.began_at >= self._settled_at and self._options.token_time is None

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
    """Return the next number on the way: the end if it is far, else half the way."""
    if SETTLED * min(slots, wanted) < max(slots, wanted):
        return wanted
    half = (wanted - slots) / 2
    return slots + (ceil(half) if half > 0 else floor(half))
