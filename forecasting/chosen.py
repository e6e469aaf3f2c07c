"""The forecaster to use when nobody has chosen one: at each fit it chooses by itself, and says why.

The candidates are `SeasonalRegression` and what it must beat: persistence, a moving level, the same time
yesterday and last week, all of which it holds within. They are backtested over the newest third of the
history at the horizon that matters, with a loss that counts too little capacity nine times as much as too
much (see `selection`); the winner is then fitted to all of it, and serves until the next fit. Where too
little is known to judge by, a moving level serves.

Holt–Winters, additive and multiplicative, was a candidate: it takes most of the time of a fit, and won
nowhere (docs/forecasting.md).
"""

from typing import Self

from forecasting.distribution import PredictiveDistribution
from forecasting.forecaster import Forecaster, History, checked_history
from forecasting.naive import Level, Persistence, SeasonalNaive
from forecasting.season_table import WEEK_DAYS
from forecasting.seasonal_regression import HISTORY_DAYS, SeasonalRegression
from forecasting.selection import Selection, choose

JUDGED_DAYS = 28
"""The newest days that candidates are judged on."""


class Chosen(Forecaster):
    """The best of several forecasters, chosen anew at each fit.

    Parameters
    ----------
    season_length : int
        Intervals in a day, >= 2: 288 for five minutes.
    horizon : int
        Steps ahead that matter, >= 1: one cold start.
    zone : str
        Time zone of the people who cause the traffic; see `SeasonalRegression`.

    Attributes
    ----------
    name_ : str
        Of the forecaster that serves.
    reason_ : str
        Why, as a sentence.
    losses_ : dict of str to float
        Pinball loss at 0.9 of each candidate that could be judged [requests per interval].
    """

    def __init__(self, season_length: int, horizon: int = 1, zone: str = "UTC") -> None:
        if horizon < 1:
            raise ValueError(f"need horizon >= 1 step, got {horizon}")
        self.season_length = season_length
        self.horizon = horizon
        self.zone = zone
        self.name_ = "level"
        self.reason_ = "level: nothing was fitted yet."
        self.losses_: dict[str, float] = {}
        self.forecaster_: Forecaster = Level()
        self.candidates()  # are the parameters possible?

    def __repr__(self) -> str:
        return f"<Chosen {self.reason_}>"

    def candidates(self) -> dict[str, Forecaster]:
        """Return the forecasters to choose from, not fitted, by name."""
        return {
            "seasonal regression": SeasonalRegression(self.season_length, self.zone),
            "persistence": Persistence(),
            "level": Level(),
            "seasonal naive, day": SeasonalNaive(self.season_length),
            "seasonal naive, week": SeasonalNaive(WEEK_DAYS * self.season_length),
        }

    def fit(self, history: History) -> Self:
        """Choose, and fit what was chosen; see `Forecaster.fit`."""
        checked_history(history)
        history = history[-HISTORY_DAYS * self.season_length :]
        selection = self._choose(history)
        self.name_, self.reason_ = selection.name, selection.reason
        self.losses_ = dict(selection.losses)
        self.forecaster_ = self.candidates()[selection.name].fit(history)
        return self

    def update(self, count: float) -> None:
        """Learn one count; see `Forecaster.update`."""
        self.forecaster_.update(count)

    def forecast(self, horizon: int) -> list[PredictiveDistribution]:
        """Return what the chosen one says; see `Forecaster.forecast`."""
        return self.forecaster_.forecast(horizon)

    def at(self, step: int) -> PredictiveDistribution:
        """Return what the chosen one says of one step; see `Forecaster.at`."""
        return self.forecaster_.at(step)

    def _choose(self, history: History) -> Selection:
        try:
            return choose(self.candidates(), history[-JUDGED_DAYS * self.season_length :], self.horizon)
        except ValueError as error:
            return Selection("level", {}, f"level: {error}.")
