"""Holt–Winters: level, damped trend and one season, estimated now and then, carried on at each count.

In error-correction form, with e the error of the one-step forecast (l + φb + s, or (l + φb) s):

    additive          l ← l + φb + α e      b ← φb + αβ e       s ← s + γ e
    multiplicative    l ← l + φb + α e/s    b ← φb + αβ e/s     s ← s + γ e/(l + φb)

which is the recursion of statsmodels' `ExponentialSmoothing`; that estimates α, β, γ, φ, from states
given to it. Four things are added, because this history is of a live system:

- A missing count is imputed by the forecast of it: e = 0.
- An error larger than can be believed (see `HorizonErrors.score`) moves trend and season no further
  than the bound: a spike today is not repeated tomorrow. The level follows in full from the second
  such error on the same side: that is a shift, and no spike.
- Days without a single request void the season. The recursion alone would not: its level goes to minus
  the season, step by step, and from there every step ahead is the old day again.
- α and γ have a least value. On a calm history the best α is 0, and a level that jumped would never
  be followed.

Hyndman, Koehler, Ord and Snyder, *Forecasting with Exponential Smoothing* (2008), ch. 2; the bounded
errors follow the idea of Gelper, Fried and Croux, *Journal of Forecasting* 29 (2010).
"""

import math
import warnings
from typing import Literal

import numpy as np

from forecasting.distribution import Array
from forecasting.horizon_errors import HorizonErrors, Steps
from forecasting.point_forecaster import PointForecaster

LEVEL_SMOOTHING = 0.3
TREND_SMOOTHING = 0.01
SEASON_SMOOTHING = 0.1
DAMPING = 0.9
"""α, β, γ, φ with fewer than two seasons; from there on, where the search for better ones begins."""

SMOOTHING_BOUNDS = {"smoothing_level": (0.15, 0.95), "smoothing_seasonal": (0.05, 0.85)}
"""α >= 0.15 follows 86 % of a level shift within 12 counts, an hour of five minutes; γ >= 0.05 learns
half of a changed day in two weeks."""
TREND_BOUNDS = {"smoothing_trend": (0.0, 0.15), "damping_trend": (0.8, 0.98)}

PROFILE_SEASONS_MAX = 3
"""Seasons, the oldest, whose mean the seasonal profile starts from."""
SPIKE_RATIO, SPIKE_COUNTS = 3.0, 5.0
"""A phase of the profile above 3 x (median of itself and two neighbours each side) + 5 is a spike."""
EXPECTED_MIN = 20.0
"""In a multiplicative model an error moves the level as if at least so many requests had been expected (but
no less than in an additive one): a few more at night say little of the day, however many times what was
expected they are."""
POSITIVE_MIN = 0.01
"""Least count and season, relative to the mean, that a multiplicative model is estimated with."""
SEASON_MAX = 100.0
IDLE_SEASONS = 4
"""So many seasons of zeros void what was known; a long weekend does not."""
GROWTH_MAX = 2.0
"""No forecast exceeds the highest count ever seen by more than this factor."""
LEVEL_MIN = 1.0
"""A level below one count tells nothing of the shape of a multiplicative season."""


class HoltWinters(PointForecaster):
    """Exponential smoothing with one season; see the top of this file.

    Parameters
    ----------
    season_length : int
        Intervals in a season, >= 2: 288 for a day of five minutes.
    trend : "damped" or None
        Whether a trend is carried on, ever weaker, or there is none.
    seasonal : "additive" or "multiplicative"
        Whether the season is added to the level, or scales with it.

    Notes
    -----
    `fit` needs one season. With fewer than two, α = 0.3, β = 0.01, γ = 0.1, φ = 0.9 are taken and the
    profile is the first season; from two on they are estimated. It looks at the last four weeks of
    five minutes (8064 counts), or three seasons if that is more, and takes about 0.7 s for them.
    """

    def __init__(
        self,
        season_length: int,
        trend: Literal["damped"] | None = "damped",
        seasonal: Literal["additive", "multiplicative"] = "additive",
    ) -> None:
        if season_length < 2:
            raise ValueError(f"need season_length >= 2 intervals, got {season_length}")
        if trend not in ("damped", None):
            raise ValueError(f"need trend 'damped' or None, got {trend!r}")
        if seasonal not in ("additive", "multiplicative"):
            raise ValueError(f"need seasonal 'additive' or 'multiplicative', got {seasonal!r}")
        self.season_length = season_length
        self.trend = trend
        self.seasonal = seasonal
        self.alpha_ = LEVEL_SMOOTHING
        self.beta_ = TREND_SMOOTHING if trend else 0.0
        self.gamma_ = SEASON_SMOOTHING
        self.phi_ = DAMPING if trend else 0.0
        self.level_ = math.nan
        self.slope_ = 0.0
        self.season_ = np.zeros(season_length)
        self.phase_ = 0
        self.doubted_ = 0.0
        self.highest_ = 0.0
        self.idle_ = 0
        super().__init__()

    def _history_max(self) -> int:
        return max(super()._history_max(), 3 * self.season_length)

    def _start(self, history: Array) -> Array:
        m = self.season_length
        history = _since_idle(history, IDLE_SEASONS * m, m)
        seasons = len(history) // m
        if seasons < 1:
            raise ValueError(f"need a season of {m} counts, got {len(history)}; use Level until then")
        self.alpha_, self.gamma_ = LEVEL_SMOOTHING, SEASON_SMOOTHING
        self.beta_, self.phi_ = (TREND_SMOOTHING, DAMPING) if self.trend else (0.0, 0.0)
        profile = _profile(history[: m * max(1, min(seasons - 1, PROFILE_SEASONS_MAX))], m)
        self._begin(profile)
        if seasons >= 2:
            believed = self._believed(history[m:])
            self._begin(profile)
            self._estimate(believed)
            self.errors_ = HorizonErrors(stride=self.errors_.stride)
        return history[m:]

    def _begin(self, profile: Array) -> None:
        """Set the states to what a season of `profile`, shape (season_length,), leaves behind."""
        self.level_ = float(profile.mean())
        self.slope_, self.doubted_, self.highest_ = 0.0, 0.0, float(profile.max())
        self.phase_ = self.idle_ = 0
        if self.seasonal == "additive":
            self.season_ = profile - self.level_
        elif self.level_ > 0:
            self.season_ = np.minimum(profile / self.level_, SEASON_MAX)
        else:
            self.season_ = np.ones(self.season_length)

    def _learn(self, count: float, bound: float) -> None:
        if math.isnan(self.level_):
            raise ValueError("HoltWinters does not know the season yet; call fit with a season of counts")
        self._notice_extremes(count)
        base, season = self.level_ + self.phi_ * self.slope_, float(self.season_[self.phase_])
        if self.seasonal == "additive":
            error = 0.0 if math.isnan(count) else count - (base + season)
            per_level, per_season, season_min, season_max = 1.0, 1.0, -math.inf, math.inf
        else:
            base = min(max(base, 0.0), self.highest_)
            error = 0.0 if math.isnan(count) else count - base * season
            per_level = 1 / max(season, min(1.0, EXPECTED_MIN / max(base, LEVEL_MIN)))
            per_season = 1 / max(base, LEVEL_MIN)
            season_min, season_max = 0.0, SEASON_MAX
        believed = min(max(error, -bound), bound)
        shifted = error * self.doubted_ > 0
        self.level_ = base + self.alpha_ * per_level * (error if shifted else believed)
        self.slope_ = self.phi_ * self.slope_ + self.alpha_ * self.beta_ * per_level * believed
        season += self.gamma_ * per_season * believed
        self.season_[self.phase_] = min(max(season, season_min), season_max)
        self.phase_ = (self.phase_ + 1) % self.season_length
        self.doubted_ = error if error != believed else 0.0

    def _notice_extremes(self, count: float) -> None:
        """Keep the highest count; forget level and season once nothing has come for long."""
        if count > 0:
            self.highest_, self.idle_ = max(count, self.highest_), 0
        elif count == 0:
            self.idle_ += 1
            if self.idle_ == IDLE_SEASONS * self.season_length:
                self.level_ = self.slope_ = 0.0
                self.season_ = np.full(self.season_length, 0.0 if self.seasonal == "additive" else 1.0)

    def _points(self, steps: Steps) -> Array:
        damped = self.phi_ * (1 - self.phi_**steps) / (1 - self.phi_)
        base = self.level_ + damped * self.slope_
        season: Array = self.season_[(self.phase_ + steps - 1) % self.season_length]
        points = base + season if self.seasonal == "additive" else np.minimum(base, self.highest_) * season
        return np.asarray(np.clip(points, 0.0, GROWTH_MAX * self.highest_))

    def _believed(self, history: Array) -> Array:
        """Live through `history`; return it with gaps imputed and unbelievable errors bounded."""
        believed, one = history.copy(), np.array([1])
        for i, count in enumerate(history.tolist()):
            point = float(self._points(one)[0])
            bound = self._live(count)
            believed[i] = point if math.isnan(count) else min(max(count, point - bound), point + bound)
        return believed

    def _estimate(self, counts: Array) -> None:
        """Estimate α, β, γ, φ by the least squared one-step errors over `counts`, from the states now."""
        # It takes a second to load, and a program that fits in another process needs it only there.
        from statsmodels.tsa.holtwinters import ExponentialSmoothing  # noqa: PLC0415

        scale = float(counts.mean())
        if not scale > 0:
            return
        additive, trended = self.seasonal == "additive", self.trend is not None
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # a search that did not converge still found something
            model = ExponentialSmoothing(
                counts / scale if additive else np.maximum(counts / scale, POSITIVE_MIN**2),
                trend="add" if trended else None,
                damped_trend=trended,
                seasonal="add" if additive else "mul",
                seasonal_periods=self.season_length,
                initialization_method="known",
                initial_level=self.level_ / scale,
                initial_trend=0.0 if trended else None,
                initial_seasonal=self.season_ / scale if additive else np.maximum(self.season_, POSITIVE_MIN),
                bounds=SMOOTHING_BOUNDS | (TREND_BOUNDS if trended else {}),
            )
            start = (
                [self.alpha_, self.beta_, self.gamma_, self.phi_] if trended else [self.alpha_, self.gamma_]
            )
            found = model.fit(start_params=start).params
        names = ("smoothing_level", "smoothing_trend", "smoothing_seasonal", "damping_trend")
        smoothing = [float(found[name]) if trended or name in SMOOTHING_BOUNDS else 0.0 for name in names]
        if all(math.isfinite(each) for each in smoothing):
            self.alpha_, self.beta_, self.gamma_, self.phi_ = smoothing


def _since_idle(history: Array, idle: int, least: int) -> Array:
    """Return what came after the last run of `idle` zeros, if that is `least` counts; else all of it."""
    ends = np.flatnonzero(history != 0)  # also a missing count ends a run
    runs = np.diff(ends, prepend=-1) - 1
    after = ends[runs >= idle]
    return history[after[-1] :] if after.size and len(history) - after[-1] >= least else history


def _profile(history: Array, season_length: int) -> Array:
    """Return the mean season, shape (season_length,), gaps bridged and single spikes taken out."""
    seasons = history.reshape(-1, season_length)
    known = ~np.isnan(seasons)
    phases = np.flatnonzero(known.any(axis=0))
    if not phases.size:
        raise ValueError(f"no count is known in the first {len(history)}; need some in the first season")
    means = np.nansum(seasons[:, phases], axis=0) / known[:, phases].sum(axis=0)
    profile = np.interp(np.arange(season_length), phases, means, period=season_length)
    local = np.median([np.roll(profile, shift) for shift in (-2, -1, 0, 1, 2)], axis=0)
    return np.asarray(np.where(profile > SPIKE_RATIO * local + SPIKE_COUNTS, local, profile))
