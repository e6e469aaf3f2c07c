"""Bursts: counts far outside of the predictive distribution, noticed at once.

Of every count it is asked: is this so far out that it cannot be chance? The answer comes with the count,
and it is calm again only after a full window without another surprise, so that a burst with a dip in it
is one burst. Time is passed in; nothing here reads a clock.
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
