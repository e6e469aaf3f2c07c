"""What a peer is shown: one interval of a pool, and its fleet."""

from collections.abc import Callable

from autoscaler.domain import Fleet, Observation
from autoscaler.replay.policies import Policy


def seen(interval: float = 15.0, *, busy: float = 0.0, waiting: int = 0, arrivals: int = 0) -> Observation:
    return Observation(interval, arrivals, 0, 0.0, 0.0, busy, round(busy) + waiting, waiting, 0.0, 0.0)


def a_fleet(ready: int, starting: int = 0, slots: int = 1) -> Fleet:
    return Fleet(ready, starting, 0, slots, cold_start_mean=120.0, cold_start_p90=150.0)


def answers(policy: Policy, shown: Callable[[float], Observation], until: float, ready: int) -> list[int]:
    """Ask `policy` as often as it says up to `until` [s], and start what it asks for at once."""
    counts, now = [], 0.0
    while (now := now + (policy.interval or 10.0)) <= until:
        wanted = policy.decide(shown(now), a_fleet(ready), now)
        ready = ready if wanted is None else int(wanted)
        counts.append(ready)
    return counts
