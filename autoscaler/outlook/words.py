"""A study in sentences and cells: lengths of time, rates, seasons, gaps, who won and by how much."""

import math
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from autoscaler.outlook.candidates import NAIVE
from autoscaler.outlook.found import Found
from autoscaler.outlook.study import Study
from forecasting.seasons import DAY, WEEK

_NAMES = {DAY: "a day", WEEK: "a week"}
_UNITS = ((WEEK, "week"), (DAY, "day"), (3600.0, "h"), (60.0, "min"), (1.0, "s"))


def length(seconds: float) -> str:
    """Say a length of time: "30 s", "5 min", "1 h 30 min", "27 days"."""
    if seconds < 1:
        return f"{seconds * 1000:.3g} ms"
    parts, rest = [], round(seconds)
    for size, name in _UNITS[1:]:
        whole, rest = divmod(rest, round(size))
        if whole:
            parts.append(f"{whole:,} {name}{'s' * (name == 'day' and whole != 1)}")
    return " ".join(parts[:2])


def rate(per_second: float) -> str:
    """Say a rate: "0.0321/s", "8.37/s", "4,870/s"."""
    return f"{per_second:,.0f}/s" if per_second >= 1000 else f"{per_second:.3g}/s"


def count(requests: float) -> str:
    """Say a number of requests in an interval: "0.042", "8.4", "12,345"."""
    if requests == 0 or requests >= 100:
        return f"{requests:,.0f}"
    return f"{requests:.3g}" if requests < 10 else f"{requests:.1f}"


def share(fraction: float, digits: int = 0) -> str:
    """Say a share: "81 %"; nothing is known: "–"."""
    return "–" if math.isnan(fraction) else f"{100 * fraction:.{digits}f} %"


def moment(found: Found, seconds: float, zone: str) -> str:
    """Say a time, by its seconds from the start of the series."""
    if not found.has_calendar:
        return f"day {int(seconds // DAY)}, {timedelta(seconds=round(seconds % DAY))}"[:-3]
    return f"{datetime.fromtimestamp(found.series.start + seconds, ZoneInfo(zone)):%a %Y-%m-%d %H:%M}"


def found_in_words(found: Found, zone: str) -> list[str]:
    """Say what a series holds."""
    series = found.series
    when = f", from {moment(found, 0.0, zone)}" if found.has_calendar else ""
    requests = "1 request" if found.requests == 1 else f"{found.requests:,.0f} requests"
    return [
        f"{len(series):,} intervals of {length(series.interval)}: {length(found.span)}{when}",
        f"{requests}: {rate(found.rate_mean)} on average, up to {rate(found.rate_peak)}",
        _gaps(found, zone),
        _seasons(found),
    ]


def _gaps(found: Found, zone: str) -> str:
    if not found.gaps:
        return "no gaps"
    longest = max(found.gaps, key=lambda gap: gap.length)
    number = f"{len(found.gaps):,} gap{'s' * (len(found.gaps) > 1)}"
    return (
        f"{number}, {share(found.missing / len(found.series), 1)} of the time; the longest is "
        f"{length(longest.length)}, from {moment(found, longest.start, zone)} on"
    )


def _seasons(found: Found) -> str:
    if not found.seasons:
        seen = f"in {length(found.span)}" if found.span < 2 * WEEK else "of a day or a week"
        return f"no season is seen {seen}"
    told = [f"{_NAMES[each.period]} ({share(each.explained)} of the ups and downs)" for each in found.seasons]
    return f"it repeats after {' and '.join(told)}"


def chosen_in_words(study: Study) -> str:
    """Say which forecaster won, at which horizon, and by how much."""
    name, losses = study.selection.name, study.selection.losses
    at = f"{length(study.horizon)} ahead"
    naive = min((each for each in NAIVE if each in losses), key=losses.__getitem__, default=None)
    if naive is None:
        return f"Chosen for {at}: {study.selection.reason}"
    if name != naive:
        gain = share(1 - losses[name] / losses[naive])
        return (
            f"Chosen for {at}: {name}; its loss is {gain} smaller than that of {naive}, the best naive one."
        )
    best, why = min(losses, key=losses.__getitem__), "no other does better"
    if losses[best] < losses[name]:
        less = share(1 - losses[best] / losses[name], 1)
        why = f"{best} is better by {less} only, not worth its trouble"
    further = f" Beyond that {study.beyond} says what comes: it knows the day."
    return f"Chosen for {at}: {name}; {why}.{further if study.beyond != name else ''}"


def judged_in_words(study: Study) -> str:
    """Say how far the forecasts of the past can be believed."""
    row = study.judged_at_horizon
    if row is None:
        return ""
    if math.isnan(row.gain):
        verdict = "the naive ones make no error here"
    elif row.gain == 0 and row.forecaster in NAIVE:
        verdict = "it is the better naive one itself"
    elif row.gain >= 0:
        verdict = f"its error is {share(row.gain)} smaller than that of the better naive one"
    else:
        verdict = f"its error is {share(-row.gain)} larger than that of the better naive one"
    judged = f"Judged on {row.score.forecasts:,} forecasts after {length(study.warm_up)} of warm-up"
    held = f"its 80 % interval held {share(row.score.coverage_80)} of what came"
    return f"{judged}: {length(row.horizon)} ahead {verdict}, and {held}."
