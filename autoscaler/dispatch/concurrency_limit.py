"""How many of its slots one replica is offered with: slow start, and what it says when it is busy.

*Slow start.* A new replica compiles, fills caches and takes its time; it begins with one slot and gets the
others evenly over `slow_start`. Only what is offered counts as capacity.

*Backpressure.* A server that answers 429 or 503 is not ill, it has fewer slots than was thought. Its limit is
cut by a factor, once for all the refusals of one burst, and grows back by a slot at a time (additive
increase, multiplicative decrease). It never falls below one slot, and nobody is ejected for it. If the server
said when to come back, it is left alone until then, where others can serve.
"""

from dataclasses import dataclass
from math import floor, inf

_ROUNDING = 1e-9
"""A period is over this fraction early [1], so that it is at the time that was computed for its end."""


@dataclass(frozen=True, slots=True)
class ConcurrencyOptions:
    """How slots of a replica come, shrink and grow back."""

    slow_start: float = 0.0
    """A new replica gets its slots over this [s]; 0: at once. Set it to the time in which a fresh one is
    slower than a warm one. Of no effect for replicas of one slot."""
    decrease: float = 0.5
    """A replica that says it is busy keeps this fraction of its slots (0..1)."""
    recovery: float = 10.0
    """It gets one slot back every so often [s]. Longer where being busy lasts."""
    settle: float = 1.0
    """Refusals within this time of a cut are taken for the same burst [s]; about one service time."""
    retry_after_max: float = 60.0
    """A server that says to come back later than this is asked again then [s]."""

    def __post_init__(self) -> None:
        if not 0 < self.decrease < 1:
            raise ValueError(f"need decrease in (0, 1), got {self.decrease}")
        if not self.recovery > 0:
            raise ValueError(f"need recovery > 0, got {self.recovery}")
        for name in ("slow_start", "settle", "retry_after_max"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"need {name} >= 0, got {getattr(self, name)}")


class ConcurrencyLimit:
    """The slots of one replica that may be offered. Began at `now` [s]; `slots` when warm and well.

    Where several programs share its slots it may have none for a while, and is as warm as it was thereafter.
    """

    def __init__(self, options: ConcurrencyOptions, slots: int, now: float) -> None:
        self._options = options
        self._began = now
        self.slots = slots
        """Those that it has [1]."""
        self._slots_last = slots  # that were any
        self._limit: int | None = None  # cut to so many
        self._cut_at = -inf
        self._grows_from = now
        self.retry_at = -inf
        """Nothing new shall go there before [s]."""

    def resize(self, slots: int) -> None:
        """The replica has other slots now; a cut holds as far as it goes."""
        self.slots = slots
        self._slots_last = slots or self._slots_last

    def backpressure(self, retry_after: float, now: float) -> None:
        """The replica said at `now` that it is busy, and shall be left alone for `retry_after` [s]."""
        options, grown = self._options, min(self._slots_last, self._grown_back(now))
        self.retry_at = max(self.retry_at, now + min(retry_after, options.retry_after_max))
        if now - self._cut_at >= options.settle:
            grown = max(1, floor(grown * options.decrease))
            self._cut_at = now
        self._limit = grown
        self._grows_from = max(now, self.retry_at)

    def offered(self, now: float) -> int:
        """Slots to offer at `now` [s], from 1 on."""
        return min(self._grown(now), self._started(now))

    def next_change(self, now: float) -> float:
        """When `offered` changes next, or it need not be left alone any more [s]; infinity if never."""
        options, times = self._options, [inf]
        if self._grown(now) < self.slots:
            steps = _steps(now - self._grows_from, options.recovery)
            times.append(self._grows_from + (steps + 1) * options.recovery)
        if self._started(now) < self.slots:
            period = options.slow_start / self.slots
            times.append(self._began + (_steps(now - self._began, period) + 1) * period)
        if self.retry_at > now:
            times.append(self.retry_at)
        return min(time for time in times if time > now)

    def _grown(self, now: float) -> int:
        """The limit, and what has grown back since."""
        return min(self.slots, self._grown_back(now))

    def _grown_back(self, now: float) -> int:
        if self._limit is None:
            return self._slots_last
        return self._limit + _steps(now - self._grows_from, self._options.recovery)

    def _started(self, now: float) -> int:
        """What slow start grants."""
        ramp = self._options.slow_start
        if now >= self._began + ramp or not self.slots:
            return self.slots
        return min(self.slots, max(1, _steps(now - self._began, ramp / self.slots)))


def _steps(passed: float, period: float) -> int:
    """Return how many whole periods have passed; 0 if time runs from later on."""
    return floor(passed / period + _ROUNDING) if passed > 0 else 0
