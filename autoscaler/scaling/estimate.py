"""Observations become estimates: the arrival rate now, and the law of the service time.

Sums of n, S and S² fade exponentially in time, so that the estimate follows a new model or a new mix of
requests and one odd interval weighs little. The squared coefficient of variation leans on that of an
exponential law (1) until some tens of services have been seen: a variance from five numbers is noise.
"""

from dataclasses import dataclass
from math import exp, nan

from autoscaler.domain import Observation
from forecasting.dispersion import Dispersion

_SCV_PRIOR = 1.0
_SCV_PRIOR_WEIGHT = 20.0  # services; the weight of the prior in the variance
_DISPERSION_INTERVALS = 360.0  # over which it is measured: a few give a noise of a tenth and more
_RATE_INTERVALS = 2.0  # over which the rate is taken; it is only shown, never decided upon


@dataclass(frozen=True, slots=True)
class Estimate:
    """What the control path believes of now.

    Attributes
    ----------
    arrival_rate : float
        Over about the last two intervals [1/s].
    service_time_mean : float
        E[S] [s]; NaN while no service has ended.
    service_scv : float
        Var[S] / E[S]² [1].
    arrival_scv : float
        Variance / mean of the counts of neighbouring intervals: 1 for Poisson arrivals, more for those in
        clumps, which no scaling can follow [1].
    services : float
        Faded number of services behind it [1].
    """

    arrival_rate: float = nan
    service_time_mean: float = nan
    service_scv: float = _SCV_PRIOR
    services: float = 0.0
    arrival_scv: float = 1.0

    @property
    def service_known(self) -> bool:
        """Whether any service has ended yet."""
        return self.services > 0


class Estimator:
    """Keeps faded sums; `update` takes one interval in and returns the estimate after it."""

    def __init__(self, service_memory: float) -> None:
        self._service_memory = service_memory
        self._count = self._sum = self._square_sum = 0.0
        self._arrivals = self._time = 0.0
        self._dispersion = Dispersion(_DISPERSION_INTERVALS)

    def update(self, observation: Observation) -> Estimate:
        """Take in one interval."""
        fade = exp(-observation.interval / self._service_memory)
        self._count = fade * self._count + observation.completions
        self._sum = fade * self._sum + observation.service_time_sum
        self._square_sum = fade * self._square_sum + observation.service_time_square_sum
        self._dispersion.update(float(observation.arrivals), observation.interval)
        rate_fade = exp(-1 / _RATE_INTERVALS)
        self._arrivals = rate_fade * self._arrivals + observation.arrivals
        self._time = rate_fade * self._time + observation.interval
        return self.current()

    def current(self) -> Estimate:
        """Return the estimate as it stands."""
        arrival_rate = self._arrivals / self._time if self._time > 0 else nan
        if self._count <= 0 or self._sum <= 0:
            return Estimate(arrival_rate, arrival_scv=self._dispersion.value)
        mean = self._sum / self._count
        scv_seen = max(0.0, self._square_sum / self._count / mean**2 - 1.0)
        weight = self._count / (self._count + _SCV_PRIOR_WEIGHT)
        scv = weight * scv_seen + (1 - weight) * _SCV_PRIOR
        return Estimate(arrival_rate, mean, scv, self._count, self._dispersion.value)
