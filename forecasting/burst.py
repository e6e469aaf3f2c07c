"""Changes that a forecast did not see: a burst in seconds, a shifted level in a few counts.

`Burst` asks of single counts: is this so far out of the predictive distribution that it cannot be chance?
It answers at once, and is calm again only after a full window without another surprise, so that a burst
with a dip in it is one burst. `Cusum` asks of errors that are each unremarkable: do they all lean the same
way? It sums what exceeds an allowance, on either side; noise keeps falling back to zero, a lasting shift
adds up. Time is passed in; nothing here reads a clock.

Page, *Biometrika* 41 (1954), for the sums.
"""

import math

from forecasting.distribution import PredictiveDistribution
from forecasting.forecaster import Stateful, checked_count

SURPRISE = 1e-4
"""A count is far outside if one at least as far out on its side is less likely than this."""


class Burst(Stateful):
    """Whether arrivals are, or lately were, far outside of what was predicted.

    Parameters
    ----------
    window : float
        For so long [s] no count may surprise before it is calm again; > 0.
    surprise : float
        Probability below which a count is far outside [1]; in (0, 0.5).
    """

    def __init__(self, window: float = 60.0, surprise: float = SURPRISE) -> None:
        if not 0 < window < math.inf:
            raise ValueError(f"need window > 0 s, got {window}")
        if not 0 < surprise < 0.5:
            raise ValueError(f"need surprise in (0, 0.5), got {surprise}")
        self.window = window
        self.surprise = surprise
        self.side_ = 0
        self.calm_at_ = -math.inf

    def __repr__(self) -> str:
        return f"<Burst {('below', 'calm', 'above')[self.side_ + 1]}>"

    def update(self, count: float, predicted: PredictiveDistribution, now: float) -> int:
        """Judge the `count` of an interval that has ended at `now` [s]; NaN = missing: only time passes.

        Returns
        -------
        int
            1 in a burst, -1 while far less comes than predicted, 0 in calm.
        """
        count = checked_count(count)
        side = 0
        if predicted.sf(count - 1) < self.surprise:
            side = 1
        elif predicted.cdf(count) < self.surprise:
            side = -1
        if side:
            self.side_, self.calm_at_ = side, now + self.window
        elif now >= self.calm_at_:
            self.side_ = 0
        return self.side_


class Cusum(Stateful):
    """Two-sided cumulative sums of standardized errors.

    Parameters
    ----------
    allowance : float
        Errors up to so many standard deviations add nothing; half of the smallest shift to be found.
    threshold : float
        The sum at which there is a shift [standard deviations]; higher is rarer, and later.
    bound : float
        A single error counts for at most so many standard deviations: one spike is no shift.
    """

    def __init__(self, allowance: float = 1.0, threshold: float = 8.0, bound: float = 4.0) -> None:
        if not 0 <= allowance < bound < allowance + threshold:
            raise ValueError(
                f"need 0 <= allowance < bound < allowance + threshold, got {allowance}, {bound}, {threshold}"
            )
        self.allowance = allowance
        self.threshold = threshold
        self.bound = bound
        self.above_ = 0.0
        self.below_ = 0.0

    def update(self, error: float) -> int:
        """Learn a standardized error; return 1 or -1 at a shift up or down, and begin anew; else 0."""
        believed = min(max(error, -self.bound), self.bound)
        self.above_ = max(0.0, self.above_ + believed - self.allowance)
        self.below_ = max(0.0, self.below_ - believed - self.allowance)
        shift = int(self.above_ > self.threshold) - int(self.below_ > self.threshold)
        if shift:
            self.above_ = self.below_ = 0.0
        return shift
