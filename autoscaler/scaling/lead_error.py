"""How wrong the forecast is, one lead time ahead: the law of came / predicted, learned as it happens.

What rises within one cold start can only be covered by headroom, so headroom is sized by the errors
really made at that horizon, heavy tail included, not by a normal law. Each prediction is kept until its
time has come, then compared with the arrivals around it. Three cares:

- Errors are weighted by the load predicted: what a quiet night does must not make the day look wild.
- Arrivals are counted in a window, and the count's own Poisson noise is in came / predicted too. Queueing
  theory pays for that noise already, so its share of the variance is taken out by shrinking.
- Before enough has been seen, a lognormal law of a stated width stands in, and it fades as data comes.
"""

from collections import deque
from dataclasses import dataclass
from math import exp, log, sqrt

import numpy as np
from numpy.typing import NDArray

_LOG_RATIOS = np.linspace(-2.0, 2.0, 81)
"""Centres of the histogram's bins: errors of exp(-2) to exp(2), in steps of 5 %."""
_NEGLIGIBLE = 1e-6


@dataclass(frozen=True, slots=True)
class _Prediction:
    at: float
    rate: float


class LeadError:
    """Distribution of came / predicted at the lead time.

    Parameters
    ----------
    prior_cv : float
        Width of the law that stands in at first: standard deviation of the log ratio [1].
    memory : float
        Errors older than this weigh less than 1/e [s].
    """

    def __init__(self, prior_cv: float, memory: float) -> None:
        prior = np.exp(-0.5 * (_LOG_RATIOS / prior_cv) ** 2)
        self._prior: NDArray[np.float64] = prior / prior.sum()
        self._memory = memory
        self._weights: NDArray[np.float64] = np.zeros_like(_LOG_RATIOS)
        self._noise = 0.0
        self._time = 0.0
        self._pending: deque[_Prediction] = deque()
        self._counts: deque[tuple[float, float, float]] = deque()

    def predict(self, rate: float, at: float) -> None:
        """Remember that `rate` [1/s] is predicted for the time `at` [s]."""
        if rate > 0 and (not self._pending or at > self._pending[-1].at):
            self._pending.append(_Prediction(at, rate))

    def came(self, arrivals: int, interval: float, now: float, window: float) -> None:
        """Take in the arrivals of the `interval` [s] that ends at `now` [s]; judge what is due.

        `window` [s] is the length over which arrivals are averaged, centred on the time predicted for.
        """
        fade = exp(-interval / self._memory)
        self._weights *= fade
        self._noise *= fade
        self._time *= fade
        self._counts.append((now, arrivals, interval))
        while self._counts[0][0] <= now - window - interval:
            self._counts.popleft()
        while self._pending and self._pending[0].at + window / 2 <= now:
            prediction = self._pending.popleft()
            counted = [c for c in self._counts if abs(c[0] - c[2] / 2 - prediction.at) <= window / 2]
            if counted:
                self._judge(prediction.rate, sum(c[1] for c in counted), sum(c[2] for c in counted), interval)

    def lost(self) -> None:
        """Forget what is pending: an interval was not measured."""
        self._pending.clear()
        self._counts.clear()

    def _judge(self, predicted: float, arrivals: float, length: float, interval: float) -> None:
        # Half an arrival more on both sides keeps the ratio finite, and is nothing where load is.
        log_ratio = log((arrivals + 0.5) / (predicted * length + 0.5))
        weight = predicted * interval
        self._weights[int(np.abs(_LOG_RATIOS - log_ratio).argmin())] += weight
        self._noise += weight / (predicted * length + 0.5)
        self._time += interval

    def ratios(self, prior_time: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the law: came / predicted, shape (n,), and weights that add up to 1, shape (n,).

        What was seen weighs as much as the prior once it has been watched for `prior_time` [s].
        """
        share = self._time / (self._time + prior_time)
        seen = float(self._weights.sum())
        law = self._seen_law(seen) if seen > 0 else self._prior
        weights = share * law + (1 - share) * self._prior
        kept = weights > _NEGLIGIBLE
        return np.exp(_LOG_RATIOS[kept]), weights[kept] / weights[kept].sum()

    def _seen_law(self, seen: float) -> NDArray[np.float64]:
        """Return what was seen less the Poisson noise of counting, on the same bins, shape (n,)."""
        weights = self._weights / seen
        mean = float(weights @ _LOG_RATIOS)
        variance = float(weights @ (_LOG_RATIOS - mean) ** 2)
        shrink = sqrt(max(0.0, 1.0 - self._noise / seen / variance)) if variance > 0 else 0.0
        shrunk = np.abs((mean + shrink * (_LOG_RATIOS - mean))[:, None] - _LOG_RATIOS).argmin(axis=1)
        return np.bincount(shrunk, weights=weights, minlength=len(_LOG_RATIOS)).astype(np.float64)
