"""Real series: the forecasters beat what they must beat, and are about as sure as they may be."""

import csv
import gzip
from pathlib import Path

import pytest

from forecasting import HoltWinters, Series, backtest, choose, with_baselines

TRACES = Path(__file__).parents[3] / "shared" / "traces"


def trace(file):
    """Return a series of `shared/traces`, filled counts marked missing."""
    path = TRACES / file
    if not path.exists():
        pytest.skip(f"no trace at {path}; put shared/traces beside the repository")
    with gzip.open(path, "rt", newline="") as lines:
        rows = list(csv.DictReader(lines))
    return Series.from_counts(
        [float(row["requests"]) for row in rows],
        interval=float(rows[0]["interval_s"]),
        missing=[row.get("filled") == "1" for row in rows],
    )


def test_holt_winters_beats_persistence_at_an_hour_on_taxi_rides():
    taxi = trace("nab/nyc_taxi_2014q3_30min.csv.gz").values[: 35 * 48]
    scores = backtest(with_baselines(HoltWinters(48), 48), taxi, steps=[2], warm_up=14 * 48, stride=2)
    (ours,), (last,), (day,) = scores.values()
    assert ours.mae < 0.75 * min(last.mae, day.mae)
    assert ours.pinball_90 < 0.75 * min(last.pinball_90, day.pinball_90)
    assert 0.72 < ours.coverage_80 < 0.90 and ours.coverage_95 > 0.88


def test_holt_winters_is_chosen_for_conversations_with_a_daily_shape():
    chats = trace("burstgpt/burstgpt_conv_d00_30.csv.gz").values
    forecaster = HoltWinters(24, seasonal="multiplicative")
    assert choose(with_baselines(forecaster, 24), chats, horizon=2).name == "HoltWinters"


def test_a_naive_forecaster_is_chosen_for_bursts_without_a_season():
    bursts = trace("burstgpt/burstgpt_api_d00_30.csv.gz").values
    selection = choose(with_baselines(HoltWinters(24), 24), bursts, horizon=1)
    assert selection.name != "HoltWinters"
