"""From traffic of the past to the numbers of a question: rates, service, burstiness, the peak hour.

Rates are taken over clock hours, and the peak hour is the busiest sixty minutes wherever they begin. How
bursty arrivals are is measured as the servers feel it, by peakedness (see `queueing.peakedness`), in blocks
of ten minutes or thirty services, whichever is longer: so the shape of the day does not count as bursts.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from autoscaler.queueing.peakedness import (
    SCV_MAX,
    arrival_scv_for_peakedness,
    peakedness,
    peakedness_of_counts,
)
from autoscaler.telemetry.traffic import Requests, Traffic
from forecasting.series import Series

Floats = NDArray[np.float64]

HOUR = 3600.0
_STEP = 60.0
_BLOCK = 600.0
_BLOCK_SERVICES = 30
_BLOCK_REQUESTS = 30
"""A block with fewer arrivals says too little."""
_BINS_PER_SERVICE = 10
_KNOWN_SHARE = 0.5
"""An hour of which less is known is left out."""


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """What traffic says of the demand and of its service. Not-a-number marks what it does not say.

    Attributes
    ----------
    requests : int
        [1].
    span : float
        From its beginning to its end [s].
    rate_mean, rate_peak : float
        Over all of it, and over the busiest hour [1/s].
    peak_start : float
        When that hour begins, from the beginning of the traffic [s].
    hours : ndarray, shape (n_hours,)
        Rate in each clock hour [1/s].
    first_hour : int
        Hour of the day, or of the traffic if its times are relative, of the first one [1].
    start : float
        When the traffic begins by its own clock [s since the epoch].
    service_time_mean, service_scv : float
        [s], [1].
    tokens_in, tokens_out : float
        Means [1].
    notes : tuple of str
        What should be known of these numbers.
    """

    requests: int
    span: float
    rate_mean: float
    rate_peak: float
    peak_start: float
    hours: Floats
    first_hour: int
    start: float
    service_time_mean: float
    service_scv: float
    tokens_in: float
    tokens_out: float
    notes: tuple[str, ...]

    @property
    def shows_hours(self) -> bool:
        """Whether it is long enough to tell one hour from another."""
        return int(np.isfinite(self.hours).sum()) > 1 and self.span > HOUR


def profile_of(traffic: Traffic) -> Profile:
    """Return what `traffic` says.

    Raises
    ------
    ValueError
        If it has no two requests at different times, or nothing arrived.
    """
    demand, notes = traffic.demand, list(traffic.notes)
    if isinstance(demand, Requests) and (len(demand) < 2 or demand.arrivals[-1] <= 0):
        raise ValueError("need at least two requests that arrived at different times")
    counts = _fine(demand)
    span = len(counts) * counts.interval
    known = np.isfinite(counts.values)
    requests = int(np.nansum(counts.values)) if isinstance(demand, Series) else len(demand)
    if requests == 0:
        raise ValueError("need at least one request")
    if not known.all():
        notes.append(f"{(~known).sum():,} of {len(known):,} intervals are not known, and left out")
    rate_peak, peak_start = _busiest_hour(counts)
    if span < HOUR:
        notes.append(
            f"it spans {span / 60:.0f} minutes: a peak hour cannot be seen, and its mean is planned for"
        )
    if counts.interval > HOUR:
        notes.append(f"it counts in steps of {counts.interval / HOUR:.3g} h: the busiest is the peak hour")
    offset = counts.start + (demand.utc_offset if isinstance(demand, Requests) else 0.0)
    hours, first_hour = _hours(counts, offset)
    start = offset if counts.start else float("nan")
    service, tokens = _service(demand, notes), _tokens(demand)
    mean = float(np.nansum(counts.values) / (known.sum() * counts.interval))
    return Profile(
        requests, span, mean, rate_peak, peak_start, hours, first_hour, start, *service, *tokens, tuple(notes)
    )


def arrival_scv(traffic: Traffic, service_time_mean: float, service_scv: float) -> tuple[float, str]:
    """Estimate the SCV of renewal arrivals that would be as bursty, for servers of this service time.

    Returns
    -------
    scv : float
        In [0, 10] [1]; 1, Poisson, if it cannot be seen.
    how : str
        How it was found, for people.
    """
    demand = traffic.demand
    interval = demand.interval if isinstance(demand, Series) else _bin(demand, service_time_mean)
    if interval > service_time_mean:
        return 1.0, (
            f"times of {interval:.3g} s are too coarse to show bursts within a service of "
            f"{service_time_mean:.3g} s: arrivals are taken as Poisson"
        )
    counts = traffic.counted(interval).values
    length = int(max(_BLOCK, _BLOCK_SERVICES * service_time_mean) / interval)
    blocks = [counts[at : at + length] for at in range(0, max(len(counts) - length, 0) + 1, length)]
    told = [block for block in blocks if np.isfinite(block).all() and block.sum() >= _BLOCK_REQUESTS]
    told = [block for block in told if len(block) * interval >= 10 * service_time_mean]
    if not told:
        return 1.0, "there are too few requests to show how bursty they are: arrivals are taken as Poisson"
    weights = np.array([block.sum() for block in told])
    found = [peakedness_of_counts(block, interval, service_time_mean) for block in told]
    z = float(np.average(found, weights=weights))
    lowest, highest = peakedness(0.0, service_scv), peakedness(SCV_MAX, service_scv)
    scv = round(arrival_scv_for_peakedness(min(max(z, lowest), highest), service_scv), 2)
    beyond = f", more than the formulas take: {SCV_MAX:g} is taken" if z > highest else ""
    return scv, f"arrivals have a peakedness of {z:.2f} (Poisson: 1){beyond}"


def _fine(demand: Requests | Series) -> Series:
    """Return counts in steps of a minute, or of a sixtieth of what is there."""
    if isinstance(demand, Series):
        return demand
    span = float(demand.arrivals[-1])
    return demand.binned(_STEP if span >= HOUR else span / 60)


def _busiest_hour(counts: Series) -> tuple[float, float]:
    """Return the rate [1/s] of the busiest hour and when it begins [s]."""
    width = min(len(counts), max(1, round(HOUR / counts.interval)))
    known = np.isfinite(counts.values)
    arrived = np.concatenate([[0.0], np.cumsum(np.nan_to_num(counts.values))])
    lasted = np.concatenate([[0.0], np.cumsum(known)]) * counts.interval
    time = lasted[width:] - lasted[:-width]
    enough = time >= _KNOWN_SHARE * width * counts.interval
    rates = np.where(enough, (arrived[width:] - arrived[:-width]) / np.maximum(time, 1e-12), 0.0)
    busiest = int(np.argmax(rates))
    return float(rates[busiest]), busiest * counts.interval


def _hours(counts: Series, offset: float) -> tuple[Floats, int]:
    """Return the rate in each clock hour, and the hour of the day at which they begin, at `offset` [s]."""
    first = int(offset // HOUR)
    if counts.interval > HOUR:
        return counts.values / counts.interval, first % 24
    times = offset + np.arange(len(counts)) * counts.interval
    hour = (times // HOUR).astype(np.int64) - first
    known = np.isfinite(counts.values)
    arrived = np.bincount(hour, weights=np.nan_to_num(counts.values))
    lasted = np.bincount(hour, weights=known) * counts.interval
    enough = lasted >= min(_KNOWN_SHARE * HOUR, lasted.max())
    return np.where(enough, arrived / np.maximum(lasted, 1e-12), np.nan), first % 24


def _service(demand: Requests | Series, notes: list[str]) -> tuple[float, float]:
    if isinstance(demand, Series):
        return float("nan"), float("nan")
    times = demand.service_times[np.isfinite(demand.service_times)]
    if not len(times) or times.mean() <= 0:
        return float("nan"), float("nan")
    scv = float(times.var() / times.mean() ** 2)
    if scv > SCV_MAX:
        notes.append(
            f"service times have an SCV of {scv:.3g}, more than the formulas take: {SCV_MAX:g} is taken"
        )
    return float(times.mean()), min(scv, SCV_MAX)


def _tokens(demand: Requests | Series) -> tuple[float, float]:
    if isinstance(demand, Series):
        return float("nan"), float("nan")
    told = (
        demand.tokens_in[np.isfinite(demand.tokens_in)],
        demand.tokens_out[np.isfinite(demand.tokens_out)],
    )
    tokens_in, tokens_out = (float(tokens.mean()) if len(tokens) else float("nan") for tokens in told)
    return tokens_in, tokens_out


def _bin(demand: Requests, service_time_mean: float) -> float:
    """Return a tenth of a service, but no less than the step in which the times were written [s]."""
    gaps = np.diff(np.unique(demand.arrivals))
    step = float(gaps.min()) if len(gaps) else service_time_mean
    written_in_steps = bool(np.allclose(demand.arrivals / step, np.round(demand.arrivals / step), atol=1e-3))
    return max(service_time_mean / _BINS_PER_SERVICE, step if written_in_steps else 0.0)
