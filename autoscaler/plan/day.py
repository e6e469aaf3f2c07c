"""What one fixed size of the fleet does through a day, and what following the demand would save.

A fleet that is sized for the peak hour keeps the wait, and stands idle at night; one that is sized for the
mean is swamped at noon. Between them no size is good: that is why fleets scale. Replicas needed in an hour
are those of the question with that hour's rate, interpolated between some rates.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from autoscaler.plan.answer import least_needed
from autoscaler.plan.question import Question
from autoscaler.plan.traffic import Profile

Floats = NDArray[np.float64]

_RATES = 33
_HOURS = 24
_TINY = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class FixedFleet:
    """A fleet that never changes, judged over all hours of the traffic.

    Attributes
    ----------
    replicas : int
        Its size [1].
    utilization : float
        Mean over all hours [1].
    hours_idle, hours_in_band, hours_busy : float
        Fractions of the hours below, inside and above the band [1].
    hours_missed, requests_missed : float
        Fraction of the hours in which the wait or the band's upper edge needs more, and fraction of all
        requests that come in those [1].
    """

    replicas: int
    utilization: float
    hours_idle: float
    hours_in_band: float
    hours_busy: float
    hours_missed: float
    requests_missed: float


@dataclass(frozen=True, slots=True, eq=False)
class Day:
    """The hours of the traffic, or of its average day, beside fleets of fixed size.

    Attributes
    ----------
    first_hour : int
        Hour of the day of the first entry of the arrays [1].
    averaged_days : int
        So many days are averaged; 1 if the hours are as they came.
    rates, needed, utilization : ndarray, shape (n_hours,)
        Rate [1/s], replicas needed [1], utilization of the fleet for the peak [1].
    for_peak, for_mean : FixedFleet
        Sized for the peak hour, and for the mean.
    replica_hours_sized : float
        Mean over all hours of the replicas needed: replica-hours an hour, if the fleet followed the demand.
    """

    first_hour: int
    averaged_days: int
    rates: Floats
    needed: Floats
    utilization: Floats
    for_peak: FixedFleet
    for_mean: FixedFleet
    replica_hours_sized: float

    @property
    def saved(self) -> float:
        """Fraction of the peak fleet's replica-hours that following the demand would save [1]."""
        return 1.0 - self.replica_hours_sized / self.for_peak.replicas


def day_of(profile: Profile, question: Question, for_peak: int, for_mean: int) -> Day:
    """Judge fleets of `for_peak` and of `for_mean` replicas over the hours of `profile`."""
    rates = np.maximum(profile.hours[np.isfinite(profile.hours)], 0.0)
    needed = _needed(question, rates)
    first, days, shown = _average_day(profile)
    return Day(
        first_hour=first,
        averaged_days=days,
        rates=shown,
        needed=_needed(question, shown),
        utilization=_utilization(question, for_peak, shown),
        for_peak=_judged(question, for_peak, rates, needed),
        for_mean=_judged(question, for_mean, rates, needed),
        replica_hours_sized=float(needed.mean()),
    )


def _average_day(profile: Profile) -> tuple[int, int, Floats]:
    """Return first hour, days averaged, and the rates: the hours themselves, or of the average day."""
    hours = profile.hours
    if len(hours) <= _HOURS:
        known = np.nan_to_num(hours, nan=float(np.nanmean(hours)))
        return profile.first_hour, 1, known
    padded = np.full(-(-(len(hours) + profile.first_hour) // _HOURS) * _HOURS, np.nan)
    padded[profile.first_hour : profile.first_hour + len(hours)] = hours
    days = padded.reshape(-1, _HOURS)
    told = np.isfinite(days)
    means = np.where(told, days, 0.0).sum(axis=0) / np.maximum(told.sum(axis=0), 1)
    return 0, round(len(hours) / _HOURS), means


def _judged(question: Question, replicas: int, rates: Floats, needed: Floats) -> FixedFleet:
    utilization = _utilization(question, replicas, rates)
    idle = utilization < question.band.low * (1.0 - _TINY)
    busy = utilization > question.band.high * (1.0 + _TINY)
    missed = needed > replicas
    return FixedFleet(
        replicas=replicas,
        utilization=float(utilization.mean()),
        hours_idle=float(idle.mean()),
        hours_in_band=float((~idle & ~busy).mean()),
        hours_busy=float(busy.mean()),
        hours_missed=float(missed.mean()),
        requests_missed=float(rates[missed].sum() / rates.sum()),
    )


def _grid(rates: Floats) -> Floats:
    positive = rates[rates > 0]
    return np.unique(np.geomspace(positive.min(), positive.max(), _RATES))


def _needed(question: Question, rates: Floats) -> Floats:
    """Replicas that each rate needs, shape of `rates`."""
    grid = _grid(rates)
    sizes = [least_needed(replace(question, arrival_rate=float(rate))) for rate in grid]
    needed = np.ceil(np.interp(rates, grid, sizes) - _TINY)
    return np.maximum(np.where(rates > 0, needed, 0.0), question.replicas_min)


def _utilization(question: Question, replicas: int, rates: Floats) -> Floats:
    """Utilization of a fleet of `replicas` at each rate, shape of `rates`."""
    grid = _grid(rates)
    busy = [question.service.queue(replicas, float(rate)).utilization for rate in grid]
    return np.interp(rates, np.append(0.0, grid), np.append(0.0, busy))
