"""The mean rate over a longer while: what to expect as long as no season is known."""

from math import exp

from autoscaler.domain import Observation


class CalmRate:
    """A faded mean of the arrival rate, which starts anew when it is overruled."""

    def __init__(self) -> None:
        self._arrivals = self._time = 0.0

    @property
    def rate(self) -> float | None:
        """[1/s]; None before anything was seen, or if nothing ever came."""
        return self._arrivals / self._time if self._arrivals > 0 else None

    def update(self, observation: Observation, memory: float, overruling: float | None) -> float:
        """Take in one interval, or start anew at the `overruling` rate; return by what factor it moved."""
        before = self.rate
        if overruling is not None:
            self._time = observation.interval
            self._arrivals = overruling * observation.interval
        else:
            fade = exp(-observation.interval / memory)
            self._arrivals = fade * self._arrivals + observation.arrivals
            self._time = fade * self._time + observation.interval
        return self.rate / before if self.rate and before else 1.0
