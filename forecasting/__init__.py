"""Time series of counts in, predictive distributions out.

A library of its own: it knows nothing of autoscaling, reads no clock, draws no random numbers that
it was not given, and performs no I/O.

>>> import numpy as np
>>> day = 100 + 50 * np.sin(np.arange(24) / 24 * 2 * np.pi)
>>> forecaster = HoltWinters(season_length=24).fit(np.tile(day, 7))
>>> now, soon = forecaster.forecast(horizon=2)
>>> round(soon.mean)
113
>>> soon.quantile(0.9) > soon.mean
True

Forecasters: `Persistence`, `SeasonalNaive`, `Level`, `HoltWinters`. Between fits: `Nowcast`.
Judging: `backtest`, `choose`, and the scores in `forecasting.scores`.
"""

from forecasting.backtest import StepScore, backtest, with_baselines
from forecasting.dispersion import Dispersion
from forecasting.distribution import (
    Empirical,
    Gamma,
    NegativeBinomial,
    PredictiveDistribution,
)
from forecasting.forecaster import Forecaster
from forecasting.holt_winters import HoltWinters
from forecasting.naive import Level, Persistence, SeasonalNaive
from forecasting.nowcast import Nowcast
from forecasting.selection import Selection, choose
from forecasting.series import Series
from forecasting.truncated_normal import TruncatedNormal

__all__ = [
    "Dispersion",
    "Empirical",
    "Forecaster",
    "Gamma",
    "HoltWinters",
    "Level",
    "NegativeBinomial",
    "Nowcast",
    "Persistence",
    "PredictiveDistribution",
    "SeasonalNaive",
    "Selection",
    "Series",
    "StepScore",
    "TruncatedNormal",
    "backtest",
    "choose",
    "with_baselines",
]
