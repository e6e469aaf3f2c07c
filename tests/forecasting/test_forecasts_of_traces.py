"""Real series: the forecasters beat what they must beat, and are about as sure as they may be."""

import csv
import gzip
from pathlib import Path

import pytest

from forecasting import (
    Chosen,
    HoltWinters,
    SeasonalNaive,
    SeasonalRegression,
    Series,
    backtest,
    choose,
    with_baselines,
)

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


@pytest.mark.parametrize(
    ("file", "day", "weeks", "most"),
    [
        ("nab/nyc_taxi_2014q3_30min.csv.gz", 48, 3, 0.62),
        ("burstgpt/burstgpt_conv_d00_30.csv.gz", 24, 2, 0.85),
    ],
)
def test_seasonal_regression_beats_the_best_naive_forecast_by_far(file, day, weeks, most):
    counts = trace(file).values[: (weeks + 2) * 7 * day]
    competitors = with_baselines(SeasonalRegression(day), day) | {"week": SeasonalNaive(7 * day)}
    scores = backtest(competitors, counts, steps=[1, 2], warm_up=weeks * 7 * day)
    ours = scores.pop("SeasonalRegression")
    ratios = [one.mae / min(each[k].mae for each in scores.values()) for k, one in enumerate(ours)]
    assert sum(ratios) / 2 < most
    assert all(0.70 < one.coverage_80 < 0.90 and 0.90 < one.coverage_95 < 0.99 for one in ours)


def test_three_days_of_page_views_are_enough_to_beat_yesterday():
    views = trace("wikipedia/dewiki_2025w36_1h.csv.gz").values
    forecaster, errors, yesterday = SeasonalRegression(24), [], []
    for t in range(72, 166, 2):
        forecaster.fit(views[:t])
        errors.append(abs(forecaster.at(1).point - views[t]))
        yesterday.append(abs(views[t - 24] - views[t]))
    assert sum(errors) < 0.6 * sum(yesterday)


def test_what_serves_bursts_without_a_season_is_no_worse_than_the_last_value():
    bursts = trace("burstgpt/burstgpt_api_d00_30.csv.gz").values
    scores = backtest(with_baselines(Chosen(24), 24), bursts, steps=[1], warm_up=14 * 24)
    assert scores["Chosen"][0].mae < 1.02 * scores["Persistence"][0].mae
