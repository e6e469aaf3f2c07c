"""Time series of counts in, predictive distributions out.

A library of its own: it knows nothing of autoscaling, reads no clock, draws no random numbers that
it was not given, and performs no I/O.

>>> import numpy as np
>>> day = 200 + 100 * np.sin(np.arange(24) / 24 * 2 * np.pi)
>>> counts = np.random.default_rng(0).poisson(np.tile(day, 14))
>>> forecaster = Chosen(season_length=24, horizon=2).fit(counts)
>>> forecaster.name_
'seasonal regression'
>>> now, soon = forecaster.forecast(horizon=2)
>>> bool(soon.quantile(0.1) < day[1] < soon.quantile(0.9))
True

`Chosen` is the one to use: it chooses at each fit. What it chooses from, and what can be had by itself:
`SeasonalRegression`, `HoltWinters`, and the naive `Persistence`, `SeasonalNaive`, `Level`. Around any of
them: `WithEvents`, for what is known beforehand. Between fits: `Nowcast` and `Burst`.
Judging: `backtest`, `choose`, and the scores in `forecasting.scores`.
"""

from forecasting.backtest import StepScore, backtest, with_baselines
from forecasting.burst import Burst
from forecasting.chosen import Chosen
from forecasting.dispersion import Dispersion
from forecasting.distribution import (
    Empirical,
    Gamma,
    NegativeBinomial,
    PredictiveDistribution,
)
from forecasting.forecaster import Forecaster
from forecasting.holt_winters import HoltWinters
from forecasting.known_events import Event, Schedule, WithEvents
from forecasting.naive import Level, Persistence, SeasonalNaive
from forecasting.nowcast import Nowcast
from forecasting.seasonal_regression import SeasonalRegression
from forecasting.selection import Selection, choose
from forecasting.series import Series
from forecasting.truncated_normal import TruncatedNormal

__all__ = [
    "Burst",
    "Chosen",
    "Dispersion",
    "Empirical",
    "Event",
    "Forecaster",
    "Gamma",
    "HoltWinters",
    "Level",
    "NegativeBinomial",
    "Nowcast",
    "Persistence",
    "PredictiveDistribution",
    "Schedule",
    "SeasonalNaive",
    "SeasonalRegression",
    "Selection",
    "Series",
    "StepScore",
    "TruncatedNormal",
    "WithEvents",
    "backtest",
    "choose",
    "with_baselines",
]
