"""A study as plain data, for programs. Counts are requests per interval; what is not known is null."""

import math
from datetime import UTC, datetime
from typing import Any

from autoscaler.outlook.judged import Judged
from autoscaler.outlook.said import QUANTILES
from autoscaler.outlook.study import Study


def study_as_plain(study: Study, source: str, notes: tuple[str, ...]) -> dict[str, Any]:
    """Return everything as numbers, text, lists and dicts, fit for JSON."""
    found = study.found
    series = found.series
    return {
        "source": source,
        "start": _time(study, 0.0),
        "interval_seconds": series.interval,
        "span_seconds": found.span,
        "intervals": len(series),
        "missing": found.missing,
        "gaps": [
            {"start": _time(study, gap.start), "start_seconds": gap.start, "seconds": gap.length}
            for gap in found.gaps
        ],
        "requests": found.requests,
        "rate_mean": found.rate_mean,
        "rate_peak": found.rate_peak,
        "seasons": [
            {
                "period_seconds": each.period,
                "correlation": each.correlation,
                "explained": each.explained,
            }
            for each in found.seasons
        ],
        "horizon_seconds": study.horizon,
        "forecaster": study.selection.name,
        "forecaster_beyond": study.beyond,
        "reason": study.selection.reason,
        "candidates": [
            {
                "name": name,
                "pinball_90": _number(study.selection.losses.get(name)),
                "fit_seconds": seconds,
            }
            for name, seconds in study.fit_seconds.items()
        ],
        "forecast": _forecast(study),
        "backtest": None if study.judged is None else [_judged(row) for row in study.judged],
        "warm_up_seconds": study.warm_up,
        "notes": list(notes),
    }


def _forecast(study: Study) -> list[dict[str, Any]]:
    ahead, interval = study.forecast, study.found.series.interval
    rows = []
    for step, mean in enumerate(ahead.means.tolist()):
        quantiles = zip(QUANTILES, ahead.quantiles[step].tolist(), strict=True)
        rows.append(
            {
                "start": _time(study, (ahead.first + step) * interval),
                "horizon_seconds": (step + 1) * interval,
                "mean": mean,
                **{f"p{100 * level:g}": value for level, value in quantiles},
            }
        )
    return rows


def _judged(row: Judged) -> dict[str, Any]:
    return {
        "horizon_seconds": row.horizon,
        "forecaster": row.forecaster,
        "mae": _number(row.score.mae),
        "persistence_mae": _number(row.persistence_mae),
        "seasonal_naive_mae": _number(row.seasonal_naive_mae),
        "pinball_90": _number(row.score.pinball_90),
        "coverage_80": _number(row.score.coverage_80),
        "coverage_95": _number(row.score.coverage_95),
    }


def _time(study: Study, seconds: float) -> str | None:
    found = study.found
    if not found.has_calendar:
        return None
    return datetime.fromtimestamp(found.series.start + seconds, UTC).isoformat()


def _number(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else value
