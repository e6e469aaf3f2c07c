"""What `SeasonalRegression` forecasts from, twice: as features to estimate by, and as cells to add up.

Features are differences, and zero when nothing is unusual, so that a penalty on their coefficients leads
back to the profile:

    now      departure of the last count; running means of departures, less it; the mean over a day;
             yesterday's departure at this time; how the columns week, kind, last week and last day differ
             from the mean of the day, now
    ahead    the same differences there, and yesterday's departure there; how the neighbours of the interval
             differ from it, in the columns day and week; the last departure, scaled as the profile rises

All but the last are linear in the cells of the table, so a forecast is one sum over them: `unfolded`. (How
much the profile rises until then was one more; it is nothing a day ahead, so that its coefficient there is
noise, which the steps before a day inherited.)
"""

import numpy as np

from forecasting.distribution import Array
from forecasting.horizon_errors import STEP_MAX, STEPS, Steps
from forecasting.season_table import COLUMNS, DAY, DEPARTURE, KIND, WEEK, Rows

NOW, AHEAD = 10, 10
"""Features of the last known interval, and of the one that is forecast."""
BASE = NOW
"""Behind the features of now, the mean of the day now."""
NEAR = np.array([0, -1, 1])
"""The interval that is forecast and its neighbours: of these the table is looked up."""
CELLS = slice(NOW, NOW + len(NEAR) * COLUMNS)
WEIGHTS = CELLS.stop + 1
"""Weights in a forecast: of what is known now, of the cells, of the departure scaled."""
FADING = np.zeros(WEIGHTS)
FADING[[*range(NOW), CELLS.start + DEPARTURE, -1]] = 1.0
"""Weights of departures: they say less and less of steps beyond those that were estimated."""


def features(cells: Array, rows: Rows, now: Array) -> tuple[Array, Array]:
    """Return what is forecast if nothing is unusual, shape (n,), and the features, shape (n, NOW + AHEAD).

    Parameters
    ----------
    cells : Array, shape (n_rows, COLUMNS)
        Of the season table.
    rows : Rows, shape (n,)
        Of the intervals that are forecast.
    now : Array, shape (NOW + 1,)
        Features of the last known interval, and its base.
    """
    there = cells[rows]
    offsets = there[:, DAY]
    out = np.empty((len(rows), NOW + AHEAD))
    out[:, :NOW] = now[:NOW]
    out[:, NOW : NOW + 5] = there[:, WEEK:]
    out[:, NOW : NOW + 4] -= offsets[:, None]
    out[:, NOW + 5 : NOW + 7] = cells[rows - 1, :KIND] - there[:, :KIND]
    out[:, NOW + 7 : NOW + 9] = cells[(rows + 1) % len(cells), :KIND] - there[:, :KIND]
    out[:, NOW + 9] = offsets * (now[0] / now[BASE]) - now[0]
    return offsets, out


def unfolded(coefficients: Array) -> Array:
    """Return the weights, shape (n, WEIGHTS), that do to cells what coefficients do to features."""
    now, others, departure, before, after, scaled = np.split(
        coefficients, np.cumsum([NOW, DEPARTURE - WEEK, 1, KIND, KIND]), axis=1
    )
    now = np.concatenate((now[:, :1] - scaled, now[:, 1:]), axis=1)
    cells = np.zeros((len(coefficients), len(NEAR), COLUMNS))
    cells[:, 0, DAY] = 1.0 - others.sum(axis=1)
    cells[:, 0, WEEK:DEPARTURE] = others
    cells[:, 0, DEPARTURE] = departure[:, 0]
    cells[:, 0, :KIND] -= before + after
    cells[:, 1, :KIND], cells[:, 2, :KIND] = before, after
    return np.concatenate((now, cells.reshape(len(coefficients), -1), scaled), axis=1)


def weighted(weights: Array, cells: Array, rows: Rows, now: Array) -> Array:
    """Return the forecasts of `rows` by weights of shape (n, WEIGHTS): quicker."""
    near = cells.take(rows[:, None] + NEAR, axis=0, mode="wrap")
    sums: Array = np.einsum("ij,ij->i", near.reshape(len(rows), -1), weights[:, CELLS])
    sums += weights[:, :NOW] @ now[:NOW]
    sums += near[:, 0, DAY] * (weights[:, -1] * (now[0] / now[BASE]))
    return sums


def weights_at(weights: Array, steps: Steps) -> Array:
    """Return weights of `steps` from those of `STEPS`: between them a mixture, beyond them fading."""
    right = np.clip(np.searchsorted(STEPS, steps), 1, len(STEPS) - 1)
    share = np.clip((steps - STEPS[right - 1]) / (STEPS[right] - STEPS[right - 1]), 0.0, 1.0)[:, None]
    mixed = weights[right - 1] * (1 - share) + weights[right] * share
    beyond = np.maximum(steps - STEP_MAX, 0)[:, None] / STEP_MAX
    return np.asarray(mixed * 0.5 ** (beyond * FADING))
