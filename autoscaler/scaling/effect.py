"""Whether more replicas do more: where something else is the narrow place, they only wait together.

While requests wait too long without a break, what is served in a second is what the fleet can do. It is
measured in stretches of a minute or more, each with the mean number of its replicas, of which those count
that have been ready for a while. A fleet grown by a quarter or more that does less than a quarter of what the
growth promised, by more than chance would have it, has grown without effect. A database, a quota, a disk or a
network that all replicas share looks like that. Without this rule such a fleet would not only grow, but run
away: as its services get longer, each size asks for a larger one.

It also looks like that when the requests have just become so much longer, which nobody can tell apart from
the door. So growth is not barred but tried: one step of a quarter at a time, after pauses that double as long
as it has no effect. Where tokens are counted they measure the work, and longer answers are told apart.

When nobody waits any more, or growth has an effect, all is forgotten.
"""

from collections import deque
from dataclasses import dataclass, replace
from math import ceil, inf, sqrt

from autoscaler.domain import Observation

_STRETCH_MIN = 60.0
"""A shorter stretch says nothing [s]."""
_BASE_MAX = 300.0
"""What it is held against need not be longer [s]."""
_SERVED_MIN = 50
"""Nor does one in which fewer were served [requests]."""
_SETTLED_MIN, _SETTLED_MAX = 30.0, 300.0
"""A replica counts once it has been ready for two mean services, at least and at most so long [s]."""
_GROWTH_MIN, _GROWTH_NONE = 0.25, 0.05
"""A fleet that has grown less is not judged; and one that has hardly grown is the new measure [1]."""
_EFFECT_MIN = 0.25
"""Less than this share of the growth is no effect [1]."""
_DEVIATIONS = 3.0
"""And what was served must be below what half of the growth promised by so many standard deviations [1]."""
_TRIAL, _TRIALS_COUNTED = 300.0, 20
"""A step is tried after so long, doubling each time [s]."""


@dataclass(frozen=True, slots=True)
class Effect:
    """Growth without effect; both are shares of what there was before [1]."""

    replicas_max: int
    """No more than so many until growth has an effect, or the next step is tried [1]."""
    fleet_growth: float
    throughput_gain: float


@dataclass(slots=True)
class _Stretch:
    """A time in which requests waited without a break."""

    time: float = 0.0
    replica_time: float = 0.0
    service_time: float = 0.0
    served: int = 0
    tokens: int = 0

    def add(self, observation: Observation, replicas: int) -> None:
        """Take in an interval with so many replicas."""
        self.time += observation.interval
        self.replica_time += observation.interval * replicas
        self.service_time += observation.service_time_sum
        self.served += observation.completions
        self.tokens += observation.tokens_in + observation.tokens_out

    @property
    def is_long(self) -> bool:
        return self.time >= _STRETCH_MIN and self.served >= _SERVED_MIN

    @property
    def replicas(self) -> float:
        return self.replica_time / self.time


class EffectWatch:
    """Compares what the fleet does before and after it grew; `update` takes in one step.

    Parameters
    ----------
    wait : float
        Shorter waits are as they shall be [s], and no sign that the fleet does all it can.
    """

    def __init__(self, wait: float) -> None:
        self._wait = wait
        self._forget()

    def _forget(self) -> None:
        self._ready: deque[tuple[float, int]] = deque()
        self._base: _Stretch | None = None
        self._stretch = _Stretch()
        self._effect: Effect | None = None
        self._trials, self._try_at = 0, inf

    def update(self, observation: Observation, ready: int, now: float) -> Effect | None:
        """Take in an interval that ended at `now` [s], with so many `ready`; return what bars growth."""
        settled = self._settled(observation, ready, now)
        if observation.is_partial:
            return self._effect
        is_long = observation.oldest_wait >= min(self._wait, observation.interval)
        if not (observation.queue_depth and is_long and settled):
            self._forget()
            self._ready.append((now, ready))
            return None
        stretch = self._stretch
        stretch.add(observation, settled)
        if stretch.is_long:
            self._compare(stretch, ready, now)
        if self._effect is not None and now >= self._try_at:
            self._try_a_step(stretch, ready, now)
        return self._effect

    def _settled(self, observation: Observation, ready: int, now: float) -> int:
        """Return how many have been ready for a while [1]."""
        # As long as before the growth: where growth has no effect, services get longer with it.
        measure = self._base or self._stretch
        service = measure.service_time / max(1, measure.served)
        since = now - min(max(_SETTLED_MIN, 2 * service), _SETTLED_MAX)
        self._ready.append((now, ready))
        while len(self._ready) > 1 and self._ready[1][0] <= since:
            self._ready.popleft()
        return min(count for _, count in self._ready)

    def _compare(self, stretch: _Stretch, ready: int, now: float) -> None:
        """Hold what is done now against what was done with fewer; a stretch that tells nothing goes on."""
        base = self._base
        growth = -1.0 if base is None else stretch.replicas / base.replicas - 1
        if base is None or growth < _GROWTH_NONE:
            merges = base is not None and growth > -_GROWTH_NONE and base.time < _BASE_MAX
            self._base, self._stretch = _merged(base, stretch) if base and merges else stretch, _Stretch()
        elif growth < _GROWTH_MIN:
            self._stretch = _Stretch()
        elif (gain := _gain(base, stretch)) >= _EFFECT_MIN * growth:
            self._forget()
            self._base = stretch
        elif _is_significant(base, stretch, gain, growth):
            if self._effect is None:
                self._try_at = now + _TRIAL
            self._effect = Effect(ready, growth, gain)
            self._stretch = _Stretch()

    def _try_a_step(self, stretch: _Stretch, ready: int, now: float) -> None:
        """Let the fleet grow by one step, to be held against what is done now."""
        if self._effect is None or not stretch.is_long:
            return
        self._effect = replace(self._effect, replicas_max=ready + max(1, ceil(_GROWTH_MIN * ready)))
        self._base, self._stretch = stretch, _Stretch()
        self._trials = min(self._trials + 1, _TRIALS_COUNTED)
        self._try_at = now + _TRIAL * 2.0**self._trials


def _merged(one: _Stretch, other: _Stretch) -> _Stretch:
    return _Stretch(
        one.time + other.time,
        one.replica_time + other.replica_time,
        one.service_time + other.service_time,
        one.served + other.served,
        one.tokens + other.tokens,
    )


def _gain(base: _Stretch, stretch: _Stretch) -> float:
    """How much more is done in a second, as a share of before [1]; in tokens where they are known."""
    if base.tokens and stretch.tokens:
        return stretch.tokens / stretch.time / (base.tokens / base.time) - 1
    return stretch.served / stretch.time / (base.served / base.time) - 1


def _is_significant(base: _Stretch, stretch: _Stretch, gain: float, growth: float) -> bool:
    """Whether so little gain is hardly chance: counts of services are taken for those of a Poisson
    process."""
    expected = base.served / base.time * stretch.time
    half = expected * (1 + growth / 2)
    deviation = sqrt(half + half**2 / base.served)
    return half - expected * (1 + gain) > _DEVIATIONS * deviation
