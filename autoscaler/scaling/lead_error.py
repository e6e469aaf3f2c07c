"""How wrong the forecast is, one lead time ahead: the law of what comes when a rate was predicted.

What rises within one cold start can only be covered by headroom, so headroom is sized by the errors
really made at that horizon, heavy tail included, not by a normal law. Each prediction is kept until its
time has come, then compared with the arrivals around it. Five cares:

- Errors are those of the square root of the rate. Whatever it is that varies, arrivals in clumps or people
  in crowds, its variance grows about with the load, and that of the root stays: the law of the day serves
  the night. Relative errors needed up to a third more replicas for the same safety (docs/policies.md).
- Errors made at a like load weigh more, and those at a high load too: what a quiet night does must not make
  the day look wild.
- Arrivals are counted in a window, and the noise of that count is in the error too: φ / (4 window) for a
  root, at any load, φ being the dispersion of counts. Queueing theory pays for it already, so it is taken out
  by shrinking.
- Before enough has been seen, the width that the forecast itself states stands in. What was seen never
  speaks alone: a law with tails, Student's, is mixed in, for no few errors show how large the next may be.
- How much of a correction by the last minutes still holds one lead time later is learned as well, by
  regression of what came on what was said.
"""

from collections import deque
from dataclasses import dataclass
from math import exp, log2, sqrt

import numpy as np
from numpy.typing import NDArray

_Array = NDArray[np.float64]

_ERRORS: _Array = 1e-3 * np.sinh(np.linspace(-16.0, 16.0, 401))
"""Centres of the histogram's bins [s^-1/2]: from 1e-3 on in steps of 8 % of the error."""
_WIDTHS: _Array = np.gradient(_ERRORS)
_WIDTH_MIN = 2e-3
"""No law is narrower than two bins [s^-1/2]."""
_LOADS = 64
"""Bins of the rate, each twice the one before, from 2^-32 to 2^32 per second."""
_FREEDOM = 6.0
"""Degrees of freedom of Student's law: the fewer, the heavier its tails."""
_CARRIED_PRIOR, _CARRIED_PRIOR_WEIGHT = 0.5, 3.0
"""What is carried of a correction before any was judged; that weighs as 5 minutes of one of 0.1 s^-1/2."""

_TAILS = 0.5 ** np.arange(13, 5, -1)
_PROBABILITIES: _Array = np.concatenate((_TAILS, np.linspace(0.02, 0.98, 25), 1 - _TAILS[::-1]))
"""At which the law is read out: finer in the tails, where waits are decided."""
_NODE_WEIGHTS: _Array = np.diff(
    np.concatenate(([0.0], (_PROBABILITIES[1:] + _PROBABILITIES[:-1]) / 2, [1.0]))
)


@dataclass(frozen=True, slots=True)
class _Prediction:
    at: float
    expected: float  # root of the rate
    correction: float  # of that root, by what came lately
    root: float  # what was said in the end


class LeadError:
    """Distribution of what comes when a rate was predicted for one lead time ahead.

    Parameters
    ----------
    memory : float
        Errors older than this weigh less than 1/e [s].
    """

    def __init__(self, memory: float) -> None:
        self._memory = memory
        self._weights: _Array = np.zeros((_LOADS, len(_ERRORS)))
        self._noise: _Array = np.zeros(_LOADS)
        self._time: _Array = np.zeros(_LOADS)
        self._corrections = 0.0  # Σ x², x: correction
        self._confirmed = 0.0  # Σ x y, y: what came beyond what was expected
        self._pending: deque[_Prediction] = deque()
        self._counts: deque[tuple[float, float, float]] = deque()

    @property
    def carried(self) -> float:
        """Share of a correction of now that still holds one lead time ahead, in [0, 1]."""
        prior = _CARRIED_PRIOR_WEIGHT
        share = (self._confirmed + _CARRIED_PRIOR * prior) / (self._corrections + prior)
        return min(max(share, 0.0), 1.0)

    def predict(self, expected: float, corrected: float, said: float, at: float) -> None:
        """Remember what is predicted for the time `at` [s].

        Parameters
        ----------
        expected, corrected, said : float
            By the forecast alone; corrected by what came lately, in full; what was made of both [1/s].
        at : float
            Later than any before [s]; another is ignored.
        """
        if said > 0 and (not self._pending or at > self._pending[-1].at):
            correction = sqrt(corrected) - sqrt(expected)
            self._pending.append(_Prediction(at, sqrt(expected), correction, sqrt(said)))

    def came(self, arrivals: int, interval: float, now: float, window: float, dispersion: float) -> None:
        """Take in the arrivals of the `interval` [s] that ends at `now` [s]; judge what is due.

        `window` [s] is the length over which arrivals are averaged, centred on the time predicted for;
        `dispersion` [1] that of counts shorter than it.
        """
        self._fade(exp(-interval / self._memory))
        self._counts.append((now, arrivals, interval))
        while self._counts[0][0] <= now - window - interval:
            self._counts.popleft()
        while self._pending and self._pending[0].at + window / 2 <= now:
            said = self._pending.popleft()
            counted = [c for c in self._counts if abs(c[0] - c[2] / 2 - said.at) <= window / 2]
            if counted:
                length = sum(c[2] for c in counted)
                came = sqrt(sum(c[1] for c in counted) / length)
                self._judge(said, came, interval, dispersion / (4 * length))

    def lost(self) -> None:
        """Forget what is pending: an interval was not measured."""
        self._pending.clear()
        self._counts.clear()

    def rates(self, predicted: float, spread: float, prior_time: float) -> tuple[_Array, _Array]:
        """Return the law of the rate when `predicted` [1/s] is.

        Parameters
        ----------
        predicted : float
            [1/s]
        spread : float
            Its relative standard deviation by the forecast's own statement [1].
        prior_time : float
            What was seen weighs as much as that statement once it was watched for so long [s].

        Returns
        -------
        rates, weights : ndarray, shape (n_nodes,)
            Ascending nodes [1/s], and their probabilities [1].
        """
        root = sqrt(predicted)
        width = max(spread * root / 2, _WIDTH_MIN)
        alike = 1 / (1 + (np.arange(_LOADS) - _load_of(root)) ** 2.0)
        watched = float(alike @ self._time)
        if watched > 0:
            share = watched / (watched + prior_time)
            seen, variance = self._seen(alike)
            width = max(sqrt(share * variance + (1 - share) * width**2), _WIDTH_MIN)
            law = share * seen + (1 - share) * _student(width)
        else:
            law = _student(width)
        errors = np.interp(_PROBABILITIES, np.cumsum(law) - law / 2, _ERRORS)
        return np.maximum(root + errors, 0.0) ** 2, _NODE_WEIGHTS

    def _judge(self, said: _Prediction, came: float, interval: float, noise: float) -> None:
        self._corrections += interval * said.correction**2
        self._confirmed += interval * said.correction * (came - said.expected)
        load, weight = _load_of(said.root), interval * said.root**2
        self._weights[load, _bin_of(came - said.root)] += weight
        self._noise[load] += weight * noise
        self._time[load] += interval

    def _seen(self, alike: _Array) -> tuple[_Array, float]:
        """Return the law of what was seen, shape (n_bins,), less the noise of counting, and its variance."""
        weights = alike @ self._weights
        total = float(weights.sum())
        weights /= total
        mean = float(weights @ _ERRORS)
        variance = float(weights @ (_ERRORS - mean) ** 2)
        noise = float(alike @ self._noise) / total
        shrink = sqrt(max(0.0, 1.0 - noise / variance)) if variance > 0 else 0.0
        shrunk = np.minimum(np.searchsorted(_ERRORS, mean + shrink * (_ERRORS - mean)), len(_ERRORS) - 1)
        return np.bincount(shrunk, weights, len(_ERRORS)).astype(np.float64), shrink**2 * variance

    def _fade(self, kept: float) -> None:
        self._weights *= kept
        self._noise *= kept
        self._time *= kept
        self._corrections *= kept
        self._confirmed *= kept


def _load_of(root: float) -> int:
    return min(max(round(2 * log2(root)) + _LOADS // 2, 0), _LOADS - 1) if root > 0 else 0


def _bin_of(error: float) -> int:
    return min(int(np.searchsorted(_ERRORS, error)), len(_ERRORS) - 1)


def _student(width: float) -> _Array:
    """Return Student's law of a scale `width` [s^-1/2] on the bins, shape (n_bins,)."""
    density = (1 + (_ERRORS / width) ** 2 / _FREEDOM) ** (-(_FREEDOM + 1) / 2) * _WIDTHS
    return np.asarray(density / density.sum())
