"""The ways in which a signal is not what it is taken for, each a function of the last minutes.

Every check asks one question, of a signal that claims to follow the load or the occupancy, against what we
measure ourselves at our own door. It answers with a sentence, or with None where nothing is wrong *or nothing
can be told*: while the load stands still, a signal that stands still may be right.
"""

from collections.abc import Sequence
from itertools import pairwise

from autoscaler.telemetry.scrape.source import Follows, Kind, SignalSource, Unit
from autoscaler.telemetry.signal_test_window import (
    Measure,
    Sample,
    correlation,
    mean,
    relative_range,
    span,
    standard_error,
    value_of,
)

SAMPLES_MIN = 12
"""Fewer tell nothing [1]."""
SPAN_MIN = 120.0
"""Neither does a shorter time [s]."""
CONSTANT_SPAN = 240.0
"""For so long must a signal stand still to be found constant [s]."""
OVER_THE_TOP = 1.05
"""A share above this is none [1]; a little more than 1 is an exporter's rounding."""
RESTARTS_MAX = 2
"""A counter that starts anew more often than this within the window is none [1]."""
FALLS_MIN = 8
"""If the load fell in so many steps and the signal in none, that is no accident [1]: 1 in 2^8."""
STRAYS = 3
"""So many values over the top are no accident [1]."""
_SETTLING = 30.0
"""After replicas were added or removed, so long is not looked at [s]."""
_AROUND_CHANGE = 120.0
"""So far before and after it is [s]."""


def own_measure(source: SignalSource) -> Measure:
    """Return what we measure of that which the signal claims to follow."""
    if source.follows is Follows.OCCUPANCY:
        return lambda sample: sample.around.occupancy
    return lambda sample: sample.around.busy_slots


def counter_as_gauge(source: SignalSource, samples: Sequence[Sample]) -> str | None:
    """Tell a total that is taken for a level: it only rises, although what it claims to follow does not.

    A signal that follows the load falls with it about as often as not. Here the load fell in eight steps or
    more and did not grow on the whole, or it fell by a quarter, and the signal never fell. While the load
    does grow nothing is said, for then a smooth level rises too; but see `falls`.
    """
    if source.kind is not Kind.GAUGE or source.follows is Follows.NOTHING or not _is_enough(samples):
        return None
    steps = list(pairwise(sample.value for sample in samples))
    rises = sum(after > before for before, after in steps)
    if falls(samples) or _restarts(samples) > RESTARTS_MAX or rises < len(steps) / 3:
        return None
    demand = [sample.around.demand for sample in samples]
    fell = sum(after < before for before, after in pairwise(demand))
    third = len(demand) // 3
    is_level = sum(demand[-third:]) <= 1.1 * sum(demand[:third])
    if not (fell >= FALLS_MIN and is_level) and _drop(demand) < max(1.0, 0.25 * max(demand)):
        return None
    return (
        f"it rose {rises} times and never fell in {span(samples):.0f} s, while the requests here fell {fell} "
        "times: it counts up, so say type: counter"
    )


def falls(samples: Sequence[Sample]) -> int:
    """Return how often the signal fell. To start anew at almost zero, as a counter does, is no fall."""
    return sum(
        after.value < before.value and not _is_restart(before, after) for before, after in pairwise(samples)
    )


def _restarts(samples: Sequence[Sample]) -> int:
    return sum(_is_restart(before, after) for before, after in pairwise(samples))


def _is_restart(before: Sample, after: Sample) -> bool:
    return after.value <= 0.1 * before.value and before.value > 0


def _drop(values: Sequence[float]) -> float:
    """Return the largest fall from any value to a later one."""
    highest, drop = 0.0, 0.0
    for value in values:
        highest = max(highest, value)
        drop = max(drop, highest - value)
    return drop


def wrong_unit(source: SignalSource, samples: Sequence[Sample]) -> str | None:
    """Tell percent that is taken for a fraction, and the other way round."""
    if not source.unit.is_share:
        return None
    over = [sample.value for sample in samples if sample.value > OVER_THE_TOP]
    if len(over) >= STRAYS:
        read = over[-1] / source.unit.scale
        if source.unit is Unit.FRACTION:
            return f"it reads {read:.4g}, and a fraction ends at 1: it is percent, so say unit: percent"
        return f"it reads {read:.4g}, and percent ends at 100: it is no share at all"
    if source.unit is not Unit.PERCENT or source.follows is Follows.NOTHING or not _is_enough(samples):
        return None
    highest = max(sample.value for sample in samples)
    occupancy = mean(samples, lambda sample: sample.around.occupancy)
    if 0 < highest <= OVER_THE_TOP * source.unit.scale and occupancy >= 0.1:
        return (
            f"it never read more than {highest / source.unit.scale:.3g} percent while {occupancy:.0%} of the "
            "slots were busy: it is a fraction, so say unit: fraction"
        )
    return None


def saturated(source: SignalSource, samples: Sequence[Sample]) -> str | None:
    """Tell a signal that is at its top while the queue here grows: it cannot say how much more is wanted."""
    recent = [sample for sample in samples if sample.at >= samples[-1].at - SPAN_MIN] if samples else []
    if source.follows is Follows.NOTHING or not _is_enough(recent):
        return None
    top = max(sample.value for sample in samples)
    at_top = sum(sample.value >= 0.98 * top for sample in recent)
    if at_top < 0.9 * len(recent) or top <= (0.5 if source.unit.is_share else 0.0):
        return None
    third = len(recent) // 3
    before = mean(recent[:third], lambda sample: sample.around.queue_depth)
    after = mean(recent[-third:], lambda sample: sample.around.queue_depth)
    if after - before < max(2.0, 0.5 * before):
        return None
    return (
        f"it stays at {top:.4g} while the queue here grew from {before:.3g} to {after:.3g}: it is full and "
        "cannot tell how much more is wanted"
    )


def constant(source: SignalSource, samples: Sequence[Sample]) -> str | None:
    """Tell a signal that stands still while what it claims to follow moves.

    It moves by less than a fifth of that, and what little it moves has nothing to do with it.
    """
    if source.follows is Follows.NOTHING or not _is_enough(samples) or span(samples) < CONSTANT_SPAN:
        return None
    own = own_measure(source)
    ours, its = relative_range(samples, own), relative_range(samples, value_of)
    if ours < 0.02 or its > 0.2 * ours or correlation(samples, own, value_of) >= 0.3:
        return None
    moved = "occupancy" if source.follows is Follows.OCCUPANCY else "number of busy slots"
    return (
        f"it reads {samples[-1].value:.4g} all the time, while the {moved} here moved by {ours:.0%} in "
        f"{span(samples):.0f} s: it tells nothing of the load"
    )


def unresponsive(source: SignalSource, samples: Sequence[Sample]) -> str | None:
    """Tell a signal that does not follow when replicas come or go, although the occupancy here does.

    Means before and after the last change of replicas are compared, and only where both the change here and
    the one it should show are beyond three standard errors.
    """
    sides = _sides_of_change(samples) if source.follows is Follows.OCCUPANCY else None
    if sides is None:
        return None
    before, after = sides
    own = own_measure(source)
    ours, our_noise = _moved(before, after, own)
    its, its_noise = _moved(before, after, value_of)
    level = mean(before, own)
    expected = ours / level * mean(before, value_of) if level > 0 else 0.0
    if (
        abs(ours) < max(0.2 * level, 3 * our_noise)
        or abs(expected) <= 3 * its_noise
        or its / expected >= 0.25
    ):
        return None
    replicas = [side[-1].around.replicas for side in sides]
    read, occupied = ([mean(side, measure) for side in sides] for measure in (value_of, own))
    return (
        f"it went from {read[0]:.4g} to {read[1]:.4g} when the replicas went from {replicas[0]} to "
        f"{replicas[1]}, while the occupancy here went from {occupied[0]:.0%} to {occupied[1]:.0%}: it does "
        "not follow the replicas"
    )


def _sides_of_change(samples: Sequence[Sample]) -> tuple[list[Sample], list[Sample]] | None:
    """Return the samples before and after replicas last came or went; None if either are too few."""
    pairs = list(pairwise(samples))
    change = next((b.at for a, b in reversed(pairs) if a.around.replicas != b.around.replicas), None)
    if change is None:
        return None
    before = _of_one_size([each for each in samples if change - _AROUND_CHANGE <= each.at < change])
    settled = change + _SETTLING
    after = [each for each in samples if settled <= each.at <= settled + _AROUND_CHANGE]
    return (before, after) if min(len(before), len(after)) >= SAMPLES_MIN // 2 else None


def _moved(before: list[Sample], after: list[Sample], measure: Measure) -> tuple[float, float]:
    """Return by how much the mean of a measure moved, and the standard errors of both means together."""
    noise = standard_error(before, measure) + standard_error(after, measure)
    return mean(after, measure) - mean(before, measure), noise


def _is_enough(samples: Sequence[Sample]) -> bool:
    # A sample that is late by a moment must not cost a whole interval.
    return len(samples) >= SAMPLES_MIN and span(samples) >= 0.9 * SPAN_MIN


def _of_one_size(samples: list[Sample]) -> list[Sample]:
    """Return the samples at the end that have the same number of replicas."""
    kept: list[Sample] = []
    for sample in reversed(samples):
        if kept and sample.around.replicas != kept[-1].around.replicas:
            break
        kept.append(sample)
    return kept[::-1]
