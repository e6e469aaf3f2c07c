"""Between fits: how far the arrivals of the last minutes confirm the forecast, or overrule it.

The true rate is R times the forecast. Before any count, R is Gamma distributed with mean 1 and the
coefficient of variation of the forecast's error. Counts are the data: with N arrivals where E were
expected,

    R ~ Gamma(1/cv² + ΣwN/φ,  1/cv² + ΣwE/φ)        mean = the one over the other

where w = exp(-age/memory) forgets, and φ, the measured variance/mean of the counts, discounts:
arrivals in bursts say less than their number. A good forecast so ignores Poisson noise, and a wrong one
is overruled once the last minute holds more evidence than the prior.

A count outside of the predictive 99.99 % is a surprise: the forecast does not apply now. It is looked
for in the last 1, 2, 4, 8, … intervals of the window together, since arrivals that just stop surprise in
no single second. From then on the observation rules alone, on what came in those intervals and since,
until nothing has surprised for a full window. The predictive distribution holds the forecast's error
and the measured φ; a surprise rule without φ fires all the time on real traffic.

West and Harrison, *Bayesian Forecasting and Dynamic Models* (1997), ch. 14, for the discounting.
"""

import math

from forecasting.dispersion import Dispersion
from forecasting.distribution import Gamma, NegativeBinomial
from forecasting.forecaster import Stateful, checked_count

SURPRISE = 1e-4
"""A count is a surprise if one at least as far out on its side is less likely than this."""
EXPECTED_MIN = 0.1
"""A forecast below this is tested as this [requests]: the first request of a night is no surprise."""
RECENT_MAX = 64
"""Intervals, the last, in which a surprise is looked for at most."""
EVIDENCE_MIN = 1e-6
"""Less observed time than this (after forgetting) is none [s]."""


class Nowcast(Stateful):
    """A discounted Gamma–Poisson filter of arrivals, with the forecast as its prior.

    Parameters
    ----------
    prior_cv : float
        Relative standard deviation of the forecast's rate [1], > 0: what is believed of the forecast.
    memory : float
        Age at which a count weighs 37 % [s]; also the window that must be calm after a surprise.
    """

    def __init__(self, prior_cv: float = 0.25, memory: float = 60.0) -> None:
        if not 0 < prior_cv < math.inf:
            raise ValueError(f"need prior_cv > 0, got {prior_cv}")
        if not 0 < memory < math.inf:
            raise ValueError(f"need memory > 0 s, got {memory}")
        self.prior_cv = prior_cv
        self.memory = memory
        self.seen_ = 0.0  # Σ w N, of all intervals
        self.time_ = 0.0  # Σ w elapsed [s]
        self.matched_ = 0.0  # Σ w N, of intervals with a forecast
        self.expected_ = 0.0  # Σ w E
        self.expected_rate_ = math.nan  # forecast of the newest interval [1/s]
        self.calm_for_ = memory
        self.dispersion_ = Dispersion()
        self.dispersion_in_window_ = Dispersion()
        self.window_ = [0.0, 0.0, 0.0]  # count, exposure and length of the window being filled
        self.recent_: list[list[float]] = []  # count, expected, elapsed of the intervals last tested

    def __repr__(self) -> str:
        state = " overruled" if self.overruled else ""
        return f"<Nowcast ratio={self.ratio.mean:.2f} dispersion={self.dispersion:.1f}{state}>"

    @property
    def dispersion(self) -> float:
        """Variance / mean of counts, the larger of those of single intervals and of whole windows [1]."""
        return max(self.dispersion_.value, self.dispersion_in_window_.value)

    @property
    def overruled(self) -> bool:
        """Whether the observation rules alone: a count surprised less than a full window ago."""
        return self.calm_for_ < self.memory

    def update(self, count: float, expected_count: float | None, elapsed: float) -> None:
        """Learn what came in the `elapsed` [s] that have just ended.

        Parameters
        ----------
        count : float
            Arrivals [requests]; NaN = missing: old evidence fades, nothing is learned.
        expected_count : float or None
            What the forecast, never corrected by this filter, had said for the same time [requests]; None if
            there is none.
        elapsed : float
            Its length [s], > 0.
        """
        count = checked_count(count)
        if not 0 < elapsed < math.inf:
            raise ValueError(f"need elapsed > 0 s, got {elapsed}")
        if expected_count is not None and not 0 <= expected_count < math.inf:
            raise ValueError(f"need a finite expected_count >= 0 or None, got {expected_count}")
        if (expected_count is None) != math.isnan(self.expected_rate_):
            self._interrupt_dispersion()
        self.expected_rate_ = math.nan if expected_count is None else expected_count / elapsed
        self._judge(count, expected_count, elapsed)
        self._forget(elapsed)
        if math.isnan(count):
            return
        self._measure_dispersion(count, expected_count, elapsed)
        self.seen_ += count
        self.time_ += elapsed
        if expected_count is not None:
            self.matched_ += count
            self.expected_ += expected_count

    def surprise(self, count: float, expected_count: float) -> bool:
        """Whether `count`, of one interval, lies outside of the predictive 99.99 %, above or below."""
        return self._surprises(count, expected_count, self.dispersion_.value)

    @property
    def ratio(self) -> Gamma:
        """True rate / forecast, as believed now; its mean is 1 when nothing is known against the forecast."""
        if self.overruled and self.time_ >= EVIDENCE_MIN and self.expected_rate_ >= 0:
            return self._rate_alone().scaled(1 / max(self.expected_rate_, EXPECTED_MIN / self.memory))
        strength = self.prior_cv**-2
        shape = strength + self.matched_ / self.dispersion
        weight = strength + self.expected_ / self.dispersion
        return Gamma(shape / weight, shape / weight**2)

    @property
    def rate(self) -> Gamma:
        """Arrival rate, as believed now [1/s]: of forecast and counts, or of the counts alone.

        Raises
        ------
        ValueError
            If there was neither a count nor a forecast yet.
        """
        if math.isnan(self.expected_rate_) or (self.overruled and self.time_ >= EVIDENCE_MIN):
            return self._rate_alone()
        return self.ratio.scaled(self.expected_rate_)

    def rebase(self, factor: float) -> None:
        """Take note that the forecast itself was revised to `factor` > 0 times what it had said.

        It has learned from the same counts, which must not correct it a second time.
        """
        if not 0 < factor < math.inf:
            raise ValueError(f"need a factor > 0, got {factor}")
        self.expected_ *= factor
        self.expected_rate_ *= factor

    def _rate_alone(self) -> Gamma:
        if self.time_ < EVIDENCE_MIN:
            raise ValueError("the nowcast has seen no count yet; call update first")
        return Gamma(self.seen_ / self.time_, self.dispersion * self.seen_ / self.time_**2)

    def _judge(self, count: float, expected_count: float | None, elapsed: float) -> None:
        """Begin, prolong or end the rule of the observation; at its begin all evidence before is void."""
        if expected_count is None:
            self.recent_ = []
        elif not math.isnan(count):
            self.recent_ = [*self.recent_, [count, expected_count, elapsed]][-self._intervals(elapsed) :]
        surprising = 0 if math.isnan(count) else self._surprising_intervals()
        if surprising:
            if not self.overruled:
                before = self.recent_[-surprising:-1]
                self.seen_ = self.matched_ = sum(each[0] for each in before)
                self.expected_ = sum(each[1] for each in before)
                self.time_ = sum(each[2] for each in before)
            self.calm_for_ = 0.0
        elif not math.isnan(count):
            self.calm_for_ = min(self.calm_for_ + elapsed, self.memory)

    def _intervals(self, elapsed: float) -> int:
        """Return how many intervals of this length are looked back at: a window, but a bounded number."""
        return min(max(round(self.memory / elapsed), 1), RECENT_MAX)

    def _surprising_intervals(self) -> int:
        """Return the fewest of the last 1, 2, 4, … intervals that are a surprise together; 0 if none are."""
        span = 1
        while span <= len(self.recent_):
            count = sum(each[0] for each in self.recent_[-span:])
            expected = sum(each[1] for each in self.recent_[-span:])
            dispersion = self.dispersion_.value if span == 1 else self.dispersion
            if self._surprises(count, expected, dispersion):
                return span
            span *= 2
        return 0

    def _surprises(self, count: float, expected_count: float, dispersion: float) -> bool:
        mean = max(expected_count, EXPECTED_MIN)
        predicted = NegativeBinomial(mean, dispersion * mean + (self.prior_cv * mean) ** 2)
        return predicted.sf(count - 1) < SURPRISE or predicted.cdf(count) < SURPRISE

    def _forget(self, elapsed: float) -> None:
        kept = math.exp(-elapsed / self.memory)
        self.seen_ *= kept
        self.time_ *= kept
        self.matched_ *= kept
        self.expected_ *= kept

    def _measure_dispersion(self, count: float, expected_count: float | None, elapsed: float) -> None:
        """Compare with the interval before, and each full window with the window before.

        The exposure is what was expected, so that the shape of the day is not taken for noise.
        """
        exposure = elapsed if expected_count is None else expected_count
        self.dispersion_.update(count, exposure)
        filled = [self.window_[0] + count, self.window_[1] + exposure, self.window_[2] + elapsed]
        if filled[2] >= self.memory:
            self.dispersion_in_window_.update(filled[0], filled[1])
            filled = [0.0, 0.0, 0.0]
        self.window_ = filled

    def _interrupt_dispersion(self) -> None:
        """Compare nothing across the moment at which a forecast came or went: exposures change their unit."""
        self.dispersion_.update(math.nan, math.nan)
        self.dispersion_in_window_.update(math.nan, math.nan)
        self.window_ = [0.0, 0.0, 0.0]
