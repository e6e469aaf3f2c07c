"""Chooses a forecaster for a series, lets it forecast, and judges it on the past beside the naive ones.

The choice is made by a backtest over the last third of the series (`forecasting.selection`), at the horizon
that matters. A few minutes ahead the last value may win although the series repeats every day. It knows
nothing of tonight, so what lies beyond the horizon is then said by the best of those that know the day.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from autoscaler.outlook.candidates import FLAT, candidates
from autoscaler.outlook.found import Found
from autoscaler.outlook.judged import Judged, judge, warm_up_of
from autoscaler.outlook.said import Said, retold, said_of
from forecasting.forecaster import Forecaster, History
from forecasting.seasons import DAY
from forecasting.selection import Selection, choose

Progress = Callable[[str, float], None]
"""Called with what is done now and the share of all that is done, in [0, 1]."""

HORIZON_STEPS = 2
"""The horizon, if it is not told."""
AHEAD_STEPS = 24
"""How far is forecast where no day is seen."""


@dataclass(frozen=True, slots=True, eq=False)
class Study:
    """All that was found out.

    Attributes
    ----------
    found : Found
        The series.
    horizon : float
        The one that matters, for which a forecaster was chosen [s].
    selection : Selection
        Which forecaster, and why.
    beyond : str
        Who says what lies beyond the horizon; mostly the same.
    fit_seconds : Mapping[str, float]
        How long a fit to the whole series takes, by name, of those that can be fitted [s].
    forecast : Said
        Of the intervals that follow.
    retold : Said
        What the chosen forecaster would have said of the last intervals, the horizon before each.
    judged : tuple of Judged or None
        By horizon; None if that was not asked for.
    warm_up : float
        What was known before the first forecast that was judged [s].
    """

    found: Found
    horizon: float
    selection: Selection
    beyond: str
    fit_seconds: Mapping[str, float]
    forecast: Said
    retold: Said
    judged: tuple[Judged, ...] | None
    warm_up: float

    @property
    def judged_at_horizon(self) -> Judged | None:
        """What was judged nearest to the horizon, if anything was."""
        return min(self.judged or (), key=lambda row: abs(row.horizon - self.horizon), default=None)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to find out; None is decided by the series.

    Attributes
    ----------
    horizon : float or None
        The one that matters [s].
    ahead : float or None
        How far to forecast [s].
    zone : str
        Whose clocks people follow.
    judge : bool
        Whether to judge it on the past.
    """

    horizon: float | None = None
    ahead: float | None = None
    zone: str = "UTC"
    judge: bool = True


def study(found: Found, wanted: Wanted, progress: Progress = lambda what, share: None) -> Study:
    """Choose, forecast and judge.

    Raises
    ------
    ValueError
        If the series is too short for the horizon, or the zone is unknown.
    """
    series = found.series
    history: History = series if found.has_calendar else series.values
    steps = max(1, round((wanted.horizon or HORIZON_STEPS * series.interval) / series.interval))
    ahead = _steps_ahead(found, wanted.ahead)
    standing = candidates(found, len(series), wanted.zone)
    progress("choose a forecaster", 0.0)
    selection = choose(standing, history, steps)
    fit_seconds = _fit(standing, history, progress)
    chosen, beyond = standing[selection.name], _beyond(found, selection)
    said = chosen.forecast(min(steps, ahead)) + standing[beyond].forecast(ahead)[steps:]
    forecast = said_of(said, len(series))
    progress("look back", 0.5)
    before = retold(chosen, history, series.values, steps)
    progress("judge", 0.6)
    judged = None
    if wanted.judge:
        judged = judge(
            found, selection.name, steps, wanted.zone, lambda share: progress("judge", 0.6 + 0.4 * share)
        )
    progress("done", 1.0)
    return Study(
        found=found,
        horizon=steps * series.interval,
        selection=selection,
        beyond=beyond,
        fit_seconds=fit_seconds,
        forecast=forecast,
        retold=before,
        judged=judged,
        warm_up=warm_up_of(found) * series.interval,
    )


def _fit(standing: Mapping[str, Forecaster], history: History, progress: Progress) -> dict[str, float]:
    """Fit all to all that is known; return how long each took [s], of those for which it is enough."""
    taken = {}
    for number, (name, forecaster) in enumerate(standing.items()):
        progress(f"fit {name}", 0.3 + 0.2 * number / len(standing))
        start = time.perf_counter()
        try:
            forecaster.fit(history)
        except ValueError:
            continue
        taken[name] = time.perf_counter() - start
    return taken


def _steps_ahead(found: Found, ahead: float | None) -> int:
    if ahead is not None:
        return max(1, round(ahead / found.series.interval))
    day = found.length(DAY) if any(season.period == DAY for season in found.seasons) else 0
    return max(day, AHEAD_STEPS)


def _beyond(found: Found, selection: Selection) -> str:
    """Return who forecasts beyond the horizon: one that knows the season, if there is one."""
    knowing = [name for name in selection.losses if name not in FLAT]
    if selection.name not in FLAT or not found.seasons or not knowing:
        return selection.name
    return min(knowing, key=selection.losses.__getitem__)
