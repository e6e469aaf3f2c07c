"""What is replayed: demand, the law of service, how replicas start, and what is wanted.

Arrivals of a series are spread evenly at random within each of its intervals; services are lognormal.
Both are drawn before the replay begins, so that every policy meets the very same requests.
"""

import csv
import gzip
from dataclasses import dataclass, field, replace
from math import log, sqrt
from pathlib import Path
from typing import TextIO

import numpy as np
from numpy.typing import NDArray

from autoscaler.domain import Objective
from autoscaler.errors import UsageError

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Scenario:
    """One pool's demand and circumstances.

    Attributes
    ----------
    counts : ndarray, shape (n_intervals,)
        Requests in each interval.
    interval : float
        Length of an interval [s].
    service_time_mean, service_scv : float
        Of the lognormal law of service [s], [1].
    slots_per_replica : int
        [1].
    cold_start_mean, cold_start_cv : float
        Of the normal law of starts, at least 1 s [s], [1].
    objective : Objective
        Wait and band.
    control_interval : float
        Between decisions [s].
    replicas_initial : int
        Ready when the replay begins [1].
    history : ndarray, shape (n_history,)
        Requests in each interval of `history_interval` before the replay, oldest first.
    history_interval : float
        [s].
    """

    counts: Floats
    interval: float
    service_time_mean: float
    service_scv: float = 1.0
    slots_per_replica: int = 1
    cold_start_mean: float = 120.0
    cold_start_cv: float = 0.25
    objective: Objective = field(default_factory=Objective)
    control_interval: float = 10.0
    replicas_initial: int = 1
    history: Floats = field(default_factory=lambda: np.empty(0))
    history_interval: float = 300.0

    @property
    def duration(self) -> float:
        """Length of the demand [s]."""
        return len(self.counts) * self.interval

    def starting_with(self, replicas: int) -> "Scenario":
        """Return the same with so many replicas ready at first."""
        return replace(self, replicas_initial=replicas)

    def learning_from(self, history: float) -> "Scenario":
        """Return a scenario in which the first `history` [s] of the demand are known beforehand.

        Raises
        ------
        UsageError
            If nothing would be left to replay.
        """
        known = round(history / self.interval)
        if known >= len(self.counts):
            raise UsageError(
                f"a history of {history:g} s leaves nothing to replay of {self.duration:g} s; shorten it"
            )
        counts, past = self.counts[known:], self.counts[:known]
        return replace(self, counts=counts, history=past, history_interval=self.interval)

    def arrival_times(self, rng: np.random.Generator) -> Floats:
        """Times of arrival, ascending [s], shape (n_requests,)."""
        counts = np.floor(self.counts + rng.random(len(self.counts))).astype(np.int64)
        starts = np.repeat(np.arange(len(counts)) * self.interval, counts)
        return np.sort(starts + self.interval * rng.random(len(starts)))

    def service_times(self, n_requests: int, rng: np.random.Generator) -> Floats:
        """Times of service [s], shape (n_requests,)."""
        if self.service_scv == 0:
            return np.full(n_requests, self.service_time_mean)
        sigma = sqrt(log(1 + self.service_scv))
        return rng.lognormal(log(self.service_time_mean) - sigma**2 / 2, sigma, n_requests)


def read_series(path: Path) -> tuple[Floats, float]:
    """Read a CSV of counts, plain or gzip, with a header that names `start_s` and `requests`.

    Returns
    -------
    counts : ndarray, shape (n_intervals,)
        Requests in each interval; an interval that is absent between two others is 0.
    interval : float
        [s].

    Raises
    ------
    UsageError
        If it cannot be read, a column is missing, a value is no number, or the steps are uneven.
    """
    starts, requests = [], []
    try:
        with _open(path) as lines:
            for number, row in enumerate(csv.DictReader(lines), start=2):
                starts.append(_number(row, "start_s", path, number))
                requests.append(_number(row, "requests", path, number))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: cannot be read: {error}") from error
    if len(starts) < 2:
        raise UsageError(f"{path}: has {len(starts)} intervals; a series needs at least 2")
    steps = np.diff(starts)
    interval = float(steps.min())
    if interval <= 0 or not np.allclose(steps / interval, np.round(steps / interval), atol=1e-3):
        raise UsageError(f"{path}: start_s must ascend in even steps; the smallest step is {interval} s")
    places = np.round((np.array(starts) - starts[0]) / interval).astype(np.int64)
    counts = np.zeros(places[-1] + 1)
    counts[places] = requests
    return counts, interval


def _open(path: Path) -> TextIO:
    return gzip.open(path, "rt", newline="") if path.suffix == ".gz" else path.open(newline="")


def _number(row: dict[str, str], column: str, path: Path, line: int) -> float:
    if column not in row:
        raise UsageError(f"{path}: has no column {column!r}; its header must name start_s and requests")
    try:
        value = float(row[column])
    except (TypeError, ValueError) as error:
        raise UsageError(f"{path}:{line}: {column}: got {row[column]!r}; a number is needed") from error
    if not (np.isfinite(value) and value >= 0):
        raise UsageError(f"{path}:{line}: {column}: got {row[column]!r}; a finite number >= 0 is needed")
    return value
