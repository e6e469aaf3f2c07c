"""A replay in windows of five minutes: what plots show, and what bad windows and the band are judged by.

Users remember the ten minutes in which nothing worked, which a mean over a day hides. Requests belong to
the window in which they arrived. States of the fleet are means over the control intervals that end within
the window.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autoscaler.replay.record import Record
from autoscaler.replay.scenario import Scenario

WINDOW = 300.0
"""Length in which waits and occupancy are judged [s]."""

SHARE_GOOD = 0.95
"""A window is bad if fewer of its requests waited no longer than the objective [1]."""

_EDGE = 1e-6
"""A control interval belongs to the window in which it ends, the edge to the window before it [s]."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Windows:
    """Arrays of shape (n_windows,), oldest first; the last window may be shorter.

    Attributes
    ----------
    start : ndarray of float
        Of the window, since the replay began [s].
    arrivals : ndarray of int
        [requests].
    offered_load : ndarray of float
        Arrivals times the mean time in a slot over the whole replay, per second: the slots that the demand of
        this window keeps busy [erlang].
    slots_ready : ndarray of float
        Slots of ready replicas, mean [1].
    replicas_ready, replicas_starting : ndarray of float
        Mean [1].
    occupancy : ndarray of float
        Busy slots / slots, as measured [1]; above 1 while draining replicas still serve. 0 without slots.
    wait_p50, wait_p95, wait_p99 : ndarray of float
        Of the requests that arrived in the window [s]; nan where none did. Who never started counts as
        having waited from arrival to the end of the replay.
    met : ndarray of float
        Fraction that waited no longer than the objective [1]; nan where none arrived.
    bad : ndarray of bool
        Whether fewer than `SHARE_GOOD` of them did.
    """

    start: Floats
    arrivals: NDArray[np.int64]
    offered_load: Floats
    slots_ready: Floats
    replicas_ready: Floats
    replicas_starting: Floats
    occupancy: Floats
    wait_p50: Floats
    wait_p95: Floats
    wait_p99: Floats
    met: Floats
    bad: NDArray[np.bool_]


def windows(record: Record, scenario: Scenario, length: float = WINDOW) -> Windows:
    """Cut a record into windows of `length` [s]."""
    n = max(1, int(np.ceil(scenario.duration / length - _EDGE)))
    start: Floats = np.arange(n, dtype=np.float64) * length
    lengths = np.minimum(scenario.duration - start, length)
    window = np.minimum((record.arrivals // length).astype(np.int64), n - 1)
    arrivals = np.bincount(window, minlength=n)
    good = (record.waits <= scenario.objective.wait_seconds).astype(float)
    met = _ratio(np.bincount(window, good, n), arrivals)
    busy, slots, ready, starting = _means_of_ticks(record, n, length)
    p50, p95, p99 = _quantiles(window, arrivals, served_waits(record, scenario), (0.50, 0.95, 0.99))
    return Windows(
        start=start,
        arrivals=arrivals,
        offered_load=arrivals * _slot_time_mean(record, scenario) / lengths,
        slots_ready=slots,
        replicas_ready=ready,
        replicas_starting=starting,
        occupancy=np.nan_to_num(_ratio(busy, slots)),
        wait_p50=p50,
        wait_p95=p95,
        wait_p99=p99,
        met=met,
        bad=met < SHARE_GOOD,
    )


def served_waits(record: Record, scenario: Scenario) -> Floats:
    """Waits [s], shape (n_requests,); of who never started: from arrival to the end of the replay."""
    return np.where(np.isfinite(record.waits), record.waits, scenario.duration - record.arrivals)


def _slot_time_mean(record: Record, scenario: Scenario) -> float:
    """Mean time that a request held its slot [s]."""
    started = np.count_nonzero(np.isfinite(record.waits))
    return record.busy_seconds / started if started else scenario.service_time_mean


def _means_of_ticks(record: Record, n: int, length: float) -> tuple[Floats, Floats, Floats, Floats]:
    """Busy slots, slots, ready and starting replicas, each the mean over the ticks of a window."""
    ticks = np.array(record.ticks, dtype=float).reshape(-1, 6)
    window = np.clip(((ticks[:, 0] - _EDGE) // length).astype(np.int64), 0, n - 1)
    ticks_in = np.maximum(1, np.bincount(window, minlength=n))
    busy, slots, ready, starting = (np.bincount(window, ticks[:, k], n) / ticks_in for k in (1, 2, 3, 4))
    return busy, slots, ready, starting


def _ratio(part: NDArray[Any], whole: NDArray[Any]) -> Floats:
    """part / whole; nan where whole is 0."""
    return np.divide(part, whole, out=np.full(len(part), np.nan), where=whole > 0)


def _quantiles(
    window: NDArray[np.int64], arrivals: NDArray[np.int64], waits: Floats, levels: tuple[float, ...]
) -> list[Floats]:
    """Quantiles of the waits of each window, interpolated as `numpy.quantile` does; nan where it is empty."""
    ordered = waits[np.lexsort((waits, window))]
    first, last = np.cumsum(arrivals) - arrivals, np.cumsum(arrivals) - 1
    some = arrivals > 0
    found = []
    for level in levels:
        quantile = np.full(len(arrivals), np.nan)
        at = (first + level * (last - first))[some]
        below = np.floor(at).astype(np.int64)
        above = np.minimum(below + 1, last[some])
        quantile[some] = ordered[below] + (at - below) * (ordered[above] - ordered[below])
        found.append(quantile)
    return found
