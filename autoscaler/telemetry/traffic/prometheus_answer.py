"""A saved answer of Prometheus to `query_range`: samples of series, added up to requests an interval.

The answer does not hold the query. A name tells what the samples are (`…_total` is a counter); `rate()` and
`increase()` drop the name, and then samples that fall as well as rise are taken for a rate [1/s].
"""

from math import floor, isfinite

import msgspec
import numpy as np

from autoscaler.errors import UsageError
from autoscaler.telemetry.prometheus_counts import counts
from autoscaler.telemetry.prometheus_meaning import Samples, meaning
from autoscaler.telemetry.traffic.demand import INTERVALS_MAX
from autoscaler.telemetry.traffic.form import Told, Wanted
from autoscaler.units import format_duration
from forecasting.series import Series

NAME = "Prometheus answer"


class _Line(msgspec.Struct):
    metric: dict[str, str] = {}
    values: list[tuple[float, str]] = []


class _Data(msgspec.Struct, rename={"result_type": "resultType"}):
    result_type: str = ""
    result: list[msgspec.Raw] = []


class _Body(msgspec.Struct):
    status: str
    data: _Data | None = None
    error: str = ""
    warnings: list[str] = []


def fits(document: object) -> bool:
    """Whether a JSON value is an answer of Prometheus."""
    return (
        isinstance(document, dict)
        and document.get("status") in ("success", "error")
        and (isinstance(document.get("data"), dict) or "error" in document)
    )


def told_by_prometheus(text: str, wanted: Wanted) -> tuple[Told, int]:
    """Return the requests of each interval, and the number of samples.

    Raises
    ------
    UsageError
        If the answer is an error, is no range, or cannot be counted.
    """
    try:
        body = msgspec.json.decode(text, type=_Body)
        data = body.data or _Data()
        lines = (
            [msgspec.json.decode(line, type=_Line) for line in data.result]
            if data.result_type == "matrix"
            else []
        )
    except msgspec.DecodeError as error:
        raise UsageError(f"is an answer of Prometheus that cannot be read: {error}") from error
    if body.status != "success":
        raise UsageError(f"holds an error of Prometheus: {body.error}")
    lines = [line for line in lines if line.values]
    if not lines:
        raise UsageError(
            f"holds no samples over time (resultType {data.result_type!r}); save what /api/v1/query_range "
            "answers"
        )
    told, of = _told(lines, wanted)
    return Told(told, (of, *body.warnings), "UTC" if wanted.zone is None else wanted.zone), sum(
        len(line.values) for line in lines
    )


def _told(lines: list[_Line], wanted: Wanted) -> tuple[Series, str]:
    times = np.unique([time for line in lines for time, _ in line.values])
    if len(times) < 2:
        raise UsageError("holds one point in time; at least 2 are needed")
    start, step = float(times[0]), float(np.diff(times).min())
    points = round((float(times[-1]) - start) / step) + 1
    if points > INTERVALS_MAX:
        raise UsageError(
            f"spans {points:,} steps of {step:g} s, more than the {INTERVALS_MAX:,} that can be held"
        )
    series = [each for line in lines if len((each := _samples(line, start, step)).places)]
    if not series:
        raise UsageError("holds no sample that is a number")
    if min(float(each.values.min()) for each in series) < 0:
        raise UsageError("holds negative values; a number of requests cannot be negative")
    per_interval = _per_interval(wanted.interval, step)
    points -= (points - 1) % per_interval
    names = {line.metric.get("__name__", "") for line in lines}
    name = names.pop() if len(names) == 1 else ""
    if name.endswith("_bucket"):
        raise UsageError(f"holds {name}, which counts a request in several buckets; ask for …_count")
    what = meaning(name, step * per_interval, series, wanted.kind)
    inside = [_before(each, points) for each in series]
    values = counts([each for each in inside if len(each.places)], points, step, per_interval, what)
    if not np.isfinite(values).any():
        raise UsageError("holds no interval in which the count is known in full")
    note = f"samples are taken as a {what.kind} ({what.why}), {len(series):,} series added up"
    return Series(values, step * per_interval, start), note


def _per_interval(interval: float | None, step: float) -> int:
    if interval is None:
        return 1
    ratio = interval / step
    if ratio < 1 - 1e-6 or abs(ratio - round(ratio)) > 1e-6:
        raise UsageError(
            f"has a point every {format_duration(step)}; ask for intervals of a multiple of that, not of "
            f"{format_duration(interval)}"
        )
    return floor(ratio + 0.5)


def _samples(line: _Line, start: float, step: float) -> Samples:
    told = {round((time - start) / step): float(text) for time, text in line.values}
    places = sorted(place for place, value in told.items() if isfinite(value))
    return Samples(np.array(places, dtype=np.int64), np.array([told[place] for place in places], dtype=float))


def _before(each: Samples, points: int) -> Samples:
    inside = each.places < points
    return Samples(each.places[inside], each.values[inside])
