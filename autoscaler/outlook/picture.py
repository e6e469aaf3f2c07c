"""What a picture of a study shows, whoever draws it: history and fan above, errors by horizon below.

Over the end of the history lies what was said of it one horizon before, as a band of 80 %: the eye can judge
whether it held. After it the fan opens: bands of 50, 80 and 95 %, darker within.
"""

import math
from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from autoscaler.outlook.said import Said
from autoscaler.outlook.study import Study
from autoscaler.outlook.words import length, share

Floats = NDArray[np.float64]

SHOWN = 4.0
"""The past is shown over so many times the length of the forecast."""
POINTS_MAX = 2000
"""Of the past, at most; more are averaged."""
TOP_QUANTILES = {"past": 0.995, "means": 0.98, "band": 0.9}
"""What is higher may stand out of the picture: a spike, or its repetition, must not flatten the rest."""
TOP_ROOM = 1.12


@dataclass(frozen=True, slots=True, eq=False)
class Band:
    """Between two quantiles."""

    share: float
    """That lies between them [1]."""
    low: Floats
    high: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Fan:
    """A forecast: times, means, bands from the widest to the narrowest."""

    times: list[datetime] | Floats
    means: Floats
    bands: tuple[Band, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Errors:
    """Mean absolute errors by horizon; each line is a name and a value a horizon."""

    horizons: list[str]
    lines: dict[str, list[float | None]]
    held: list[str]
    """For each horizon, how much of what came lay in the 80 % band."""


@dataclass(frozen=True, slots=True, eq=False)
class Picture:
    """Rates [1/s] over time, and errors [1/s] by horizon.

    Times are datetimes without a zone, or days from the start of the series if that has no calendar.
    """

    title: str
    subtitle: str
    chosen: str
    past_times: list[datetime] | Floats
    past: Floats
    retold: Fan
    retold_name: str
    fan: Fan
    now: datetime | float
    top: float
    errors: Errors | None
    has_calendar: bool


def picture_of(study: Study, name: str, zone: str) -> Picture:
    """Return what to draw of `study`, of the series called `name`."""
    found, ahead, retold = study.found, study.forecast, study.retold
    interval, n = found.series.interval, len(found.series)
    first = max(0, n - round(SHOWN * len(ahead.means)))
    past_times, past = _thinned(np.arange(first, n, dtype=np.float64), found.series.values[first:] / interval)
    fan = Fan(
        _times(study, _middles(ahead), zone),
        ahead.means / interval,
        tuple(_band(study, ahead, low, high) for low, high in ((0.025, 0.975), (0.1, 0.9), (0.25, 0.75))),
    )
    told = Fan(
        _times(study, _middles(retold), zone),
        retold.means / interval,
        (_band(study, retold, 0.1, 0.9),) if len(retold.means) else (),
    )
    heights = {"past": found.series.values[first:] / interval, "means": fan.means, "band": fan.bands[0].high}
    tops = [np.nanquantile(heights[name], level) for name, level in TOP_QUANTILES.items()]
    return Picture(
        title=name,
        subtitle=_subtitle(study),
        chosen=study.beyond,
        past_times=_times(study, past_times, zone),
        past=past,
        retold=told,
        retold_name=f"said {length(study.horizon)} before: 80 %",
        fan=fan,
        now=_times(study, np.array([float(n)]), zone)[0],
        top=float(np.nanmax(tops)) * TOP_ROOM or 1.0,
        errors=_errors(study),
        has_calendar=found.has_calendar,
    )


def _subtitle(study: Study) -> str:
    row = study.judged_at_horizon
    if row is None:
        return f"{study.selection.name}, chosen for {length(study.horizon)} ahead"
    compared = "naive ones make no error" if math.isnan(row.gain) else "the better naive one itself"
    if row.gain > 0 or row.gain < 0:
        side = "below" if row.gain >= 0 else "above"
        compared = f"error {share(abs(row.gain))} {side} that of the better naive one"
    return f"{length(row.horizon)} ahead: {compared}, 80 % band held {share(row.score.coverage_80)}"


def _middles(ahead: Said) -> Floats:
    return np.arange(ahead.first, ahead.first + len(ahead.means), dtype=np.float64) + 0.5


def _band(study: Study, ahead: Said, low: float, high: float) -> Band:
    interval = study.found.series.interval
    return Band(high - low, ahead.quantile(low) / interval, ahead.quantile(high) / interval)


def _thinned(places: Floats, values: Floats) -> tuple[Floats, Floats]:
    """Return the middles of intervals and their values, averaged so that there are not too many."""
    size = -(-len(values) // POINTS_MAX)
    whole = len(values) // size * size
    if size == 1:
        return places + 0.5, values
    blocks = values[len(values) - whole :].reshape(-1, size)
    known = ~np.isnan(blocks)
    means = np.where(known, blocks, 0.0).sum(axis=1) / np.where(known.any(axis=1), known.sum(axis=1), np.nan)
    return places[len(values) - whole :].reshape(-1, size).mean(axis=1) + 0.5, means


def _times(study: Study, places: Floats, zone: str) -> list[datetime] | Floats:
    found = study.found
    seconds = places * found.series.interval
    if not found.has_calendar:
        return np.asarray(seconds / 86_400.0)
    local = ZoneInfo(zone)
    begin = datetime.fromtimestamp(found.series.start, local)
    return [(begin + timedelta(seconds=each)).replace(tzinfo=None) for each in seconds.tolist()]


def _errors(study: Study) -> Errors | None:
    if not study.judged:
        return None
    interval, rows = study.found.series.interval, study.judged
    seasonal = [row.seasonal_naive_mae for row in rows]
    lines: dict[str, list[float | None]] = {
        rows[0].forecaster: [row.score.mae / interval for row in rows],
        "persistence": [row.persistence_mae / interval for row in rows],
    }
    if any(mae is not None for mae in seasonal):
        lines["better seasonal naive"] = [None if mae is None else mae / interval for mae in seasonal]
    return Errors(
        [length(row.horizon) for row in rows],
        lines,
        [share(row.score.coverage_80) for row in rows],
    )
