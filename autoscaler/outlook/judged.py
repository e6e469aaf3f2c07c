"""How good forecasts of the past have been, beside those of the naive ones over the same counts.

The forecaster is fitted to the first part of the series alone, the warm-up, and lives through the rest as in
service: at each interval it says what comes at several horizons, and learns the count then; now and then it
is fitted anew to all that is known by then. It has not seen what it is judged on; that it was chosen with
that in sight flatters it by as little as one choice among four can.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, fields

from autoscaler.outlook.candidates import PERSISTENCE, SEASONAL, candidates
from autoscaler.outlook.found import Found
from forecasting.backtest import StepScore, backtest
from forecasting.forecaster import Forecaster, History
from forecasting.seasons import DAY
from forecasting.selection import choose

STEPS = (1, 2, 6, 12)
"""Steps ahead that are judged, beside the horizon."""
WARM_UP_SHARE, WARM_UP_MAX = 0.46, 14 * DAY
"""Of the series, but no longer than two weeks [s]; whole days if there is one."""
ORIGINS_MAX = 1000
"""Forecasts judged, at most; more are thinned out evenly."""
FITS_MAX = 12
"""Fits of the chosen one, spread evenly, but no more than one a day; in service they are more frequent."""


@dataclass(frozen=True, slots=True)
class Judged:
    """How the chosen forecaster did at one horizon, over the same counts as the naive ones.

    Attributes
    ----------
    horizon : float
        [s].
    forecaster : str
        Who was chosen; if the warm-up is too short for that one, who the warm-up would choose.
    score : StepScore
        Of that one.
    persistence_mae : float
        [requests per interval].
    seasonal_naive_mae : float or None
        Of the better seasonal naive one; None before a season [requests per interval].
    """

    horizon: float
    forecaster: str
    score: StepScore
    persistence_mae: float
    seasonal_naive_mae: float | None

    @property
    def gain(self) -> float:
        """By which share its error is smaller than that of the better naive one [1]; NaN if that has none."""
        seasonal = math.inf if self.seasonal_naive_mae is None else self.seasonal_naive_mae
        naive = min(self.persistence_mae, seasonal)
        return 1 - self.score.mae / naive if naive > 0 else math.nan


def warm_up_of(found: Found) -> int:
    """Return how many intervals are known before the first forecast that is judged."""
    span = min(WARM_UP_SHARE * found.span, WARM_UP_MAX)
    whole = span // DAY * DAY if span >= DAY else span
    return max(1, round(whole / found.series.interval))


def judge(
    found: Found, name: str, horizon: int, zone: str, progress: Callable[[float], None] = lambda share: None
) -> tuple[Judged, ...]:
    """Judge the forecaster of that name at `horizon` steps and others; nothing if the series is too short.

    `progress` is called with the share that is done.
    """
    history: History = found.series if found.has_calendar else found.series.values
    n, warm_up = len(history), warm_up_of(found)
    steps = [step for step in sorted({*STEPS, horizon}) if warm_up + step < n]
    if not steps:
        return ()
    standing = candidates(found, warm_up, zone)
    if name not in standing:  # the warm-up is too short for it
        name = choose(standing, history[:warm_up], min(horizon, max(warm_up // 4, 1))).name
    naive = {each: standing[each] for each in (PERSISTENCE, *SEASONAL) if each in standing}
    stride = max((n - warm_up) // ORIGINS_MAX, 1)
    said = backtest(naive, history, steps, warm_up, stride)
    progress(0.3)
    every = max(-(-(n - warm_up) // FITS_MAX), found.length(DAY), 1) // stride * stride or stride
    scores = _refitted(standing[name], history, steps, warm_up, stride, every, progress)
    rows = []
    for place, step in enumerate(steps):
        seasonal = min((said[each][place].mae for each in SEASONAL if each in said), default=None)
        persistence = said[PERSISTENCE][place].mae
        rows.append(Judged(step * found.series.interval, name, scores[place], persistence, seasonal))
    return tuple(row for row in rows if row.score.forecasts)


def _refitted(
    forecaster: Forecaster,
    history: History,
    steps: list[int],
    warm_up: int,
    stride: int,
    every: int,
    progress: Callable[[float], None],
) -> list[StepScore]:
    """Backtest over stretches of `every` intervals, with a fit before each; return the scores by step."""
    last = len(history) - max(steps) + 1
    stretches = []
    for first in range(warm_up, last, every):
        known = history[: min(first + every, last) + max(steps) - 1]
        stretches.append(backtest({"": forecaster}, known, steps, first, stride)[""])
        progress(0.3 + 0.7 * (first - warm_up) / (last - warm_up))
    return [_joined([scores[place] for scores in stretches]) for place in range(len(steps))]


def _joined(scores: list[StepScore]) -> StepScore:
    """Average scores of one step over several stretches; each weighs by its forecasts."""
    forecasts = sum(score.forecasts for score in scores)
    means = {
        each.name: sum(getattr(score, each.name) * score.forecasts for score in scores if score.forecasts)
        / max(forecasts, 1)
        for each in fields(StepScore)
        if each.name not in ("step", "forecasts")
    }
    return StepScore(step=scores[0].step, forecasts=forecasts, **means)
