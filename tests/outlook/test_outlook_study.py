"""A study chooses, forecasts and judges; its words, its data and its pictures say the same."""

import json
import math
import warnings

import numpy as np
import pytest

from autoscaler.outlook.candidates import LEVEL, PERSISTENCE, SEASONAL_DAY, candidates
from autoscaler.outlook.found import found_in
from autoscaler.outlook.judged import _refitted
from autoscaler.outlook.picture import picture_of
from autoscaler.outlook.picture_html import write_html
from autoscaler.outlook.picture_png import write_png
from autoscaler.outlook.plain import study_as_plain
from autoscaler.outlook.said import QUANTILES
from autoscaler.outlook.study import Study, Wanted, study
from autoscaler.outlook.words import chosen_in_words, found_in_words, judged_in_words, length, moment
from forecasting.backtest import backtest
from forecasting.naive import Persistence
from forecasting.series import Series

HOUR, DAY = 3600.0, 86_400.0
MONDAY = 1_793_577_600.0  # date -u -d '2026-11-02 00:00' +%s


def hours(days: float, start: float = MONDAY, swing: float = 0.6, seed: int = 1) -> Series:
    t = np.arange(round(24 * days))
    rate = 500 * (1 + swing * np.sin(2 * np.pi * t / 24))
    return Series(np.random.default_rng(seed).poisson(rate), HOUR, start)


@pytest.fixture(scope="module")
def daily() -> Study:
    return study(found_in(hours(10)), Wanted())


def test_a_series_that_repeats_every_day_is_forecast_for_a_day(daily):
    ahead = daily.forecast
    assert (ahead.first, len(ahead.means)) == (240, 24)
    truth = 500 * (1 + 0.6 * np.sin(2 * np.pi * np.arange(24) / 24))
    assert np.abs(ahead.means - truth).mean() < 50
    assert (np.diff(ahead.quantiles, axis=1) >= 0).all()
    assert daily.selection.name not in (PERSISTENCE, LEVEL)


def test_it_is_judged_at_several_horizons_beside_the_naive_ones(daily):
    assert daily.warm_up == 4 * DAY
    assert [row.horizon for row in daily.judged] == [1 * HOUR, 2 * HOUR, 6 * HOUR, 12 * HOUR]
    at_two = daily.judged_at_horizon
    assert at_two.horizon == daily.horizon == 2 * HOUR
    assert at_two.score.mae < at_two.seasonal_naive_mae < at_two.persistence_mae
    assert at_two.gain == pytest.approx(1 - at_two.score.mae / at_two.seasonal_naive_mae)


def test_a_fit_before_each_stretch_judges_the_same_counts_as_one_fit_before_all():
    found = found_in(hours(10))
    counts, steps = found.series.values, [1, 3]
    asked = (counts, steps, 96, 2)
    once = backtest({"": Persistence()}, *asked)[""]
    stretches = _refitted(Persistence(), *asked, every=24, progress=lambda share: None)
    assert [score.forecasts for score in stretches] == [score.forecasts for score in once]
    assert [score.mae for score in stretches] == pytest.approx([score.mae for score in once])


def test_what_would_have_been_said_of_the_last_intervals_mostly_held(daily):
    told = daily.retold
    came = daily.found.series.values[told.first :]
    assert len(told.means) == len(came) > 100
    held = (told.quantile(0.1) <= came) & (came <= told.quantile(0.9))
    assert 0.6 < held.mean() < 0.97


def test_what_is_not_asked_for_is_not_judged():
    assert study(found_in(hours(3)), Wanted(judge=False)).judged is None


def test_the_horizon_and_the_reach_are_choices():
    done = study(found_in(hours(4)), Wanted(horizon=3 * HOUR, ahead=6 * HOUR, judge=False))
    assert (done.horizon, len(done.forecast.means)) == (3 * HOUR, 6)


def test_before_a_season_there_is_no_seasonal_naive_one():
    done = study(found_in(hours(0.9)), Wanted())
    assert done.found.seasons == ()
    assert {row.seasonal_naive_mae for row in done.judged} == {None}
    assert study_as_plain(done, "x", ())["backtest"][0]["seasonal_naive_mae"] is None


@pytest.mark.parametrize(
    "values",
    [
        np.zeros(200),
        np.full(200, 7.0),
        np.concatenate([np.full(100, 50.0), np.zeros(100)]),
        np.where(np.arange(200) % 3, 10.0, np.nan),
        np.concatenate([np.full(199, 5.0), [1e9]]),
        np.arange(12.0),
    ],
)
def test_any_series_gives_finite_forecasts(values):
    done = study(found_in(Series(values, HOUR, MONDAY)), Wanted())
    assert np.isfinite(done.forecast.quantiles).all()
    json.dumps(study_as_plain(done, "x", ()), allow_nan=False)
    picture_of(done, "x", "UTC")
    assert all("nan" not in line for line in [chosen_in_words(done), judged_in_words(done)])


def test_a_series_too_short_to_choose_by_is_refused():
    with pytest.raises(ValueError, match="no candidate can be judged"):
        study(found_in(Series(np.ones(2), HOUR)), Wanted())


def test_progress_only_rises_and_says_what_is_done():
    said = []
    study(found_in(hours(3)), Wanted(), lambda what, share: said.append((what, share)))
    shares = [share for _, share in said]
    assert shares == sorted(shares)
    assert (shares[0], said[-1]) == (0.0, ("done", 1.0))
    assert ("fit " + PERSISTENCE) in [what for what, _ in said]


# --- candidates


def test_a_season_must_have_been_seen_to_be_repeated():
    found = found_in(hours(30))
    assert set(candidates(found, 20, "UTC")) == {PERSISTENCE, LEVEL, "seasonal regression"}
    assert SEASONAL_DAY in candidates(found, 25, "UTC")
    assert len(candidates(found, 24 * 30, "UTC")) == 5


def test_where_a_day_is_no_whole_number_of_intervals_none_is_repeated():
    assert set(candidates(found_in(Series(np.ones(1000), 7000.0)), 1000, "UTC")) == {PERSISTENCE, LEVEL}


# --- as data


def test_the_fields_of_a_backtest_are_those_that_programs_know(daily):
    plain = study_as_plain(daily, "calls.csv", ("a note",))
    assert set(plain["backtest"][0]) == {
        "horizon_seconds",
        "forecaster",
        "mae",
        "persistence_mae",
        "seasonal_naive_mae",
        "pinball_90",
        "coverage_80",
        "coverage_95",
    }
    assert plain["backtest"][1]["horizon_seconds"] == 7200.0
    assert plain["start"] == "2026-11-02T00:00:00+00:00"
    assert plain["forecast"][0]["start"] == "2026-11-12T00:00:00+00:00"
    assert set(plain["forecast"][0]) == {"start", "horizon_seconds", "mean"} | {
        f"p{100 * p:g}" for p in QUANTILES
    }


# --- in words


@pytest.mark.parametrize(
    "seconds, said",
    [
        (0.25, "250 ms"),
        (30, "30 s"),
        (5400, "1 h 30 min"),
        (86_400, "1 day"),
        (27 * 86_400 + 7200, "27 days 2 h"),
    ],
)
def test_lengths_of_time_are_said_in_at_most_two_units(seconds, said):
    assert length(seconds) == said


def test_times_follow_the_clocks_of_a_zone_or_count_the_days():
    found = found_in(hours(3))
    assert moment(found, 0.0, "Europe/Berlin") == "Mon 2026-11-02 01:00"
    assert moment(found_in(hours(3, start=0.0)), 1.5 * DAY, "UTC") == "day 1, 12:00"


def test_what_is_found_is_said(daily):
    values = daily.found.series.values.copy()
    values[30:33] = math.nan
    lines = found_in_words(found_in(Series(values, HOUR, MONDAY)), "UTC")
    assert lines[0] == "240 intervals of 1 h: 10 days, from Mon 2026-11-02 00:00"
    assert lines[2] == "1 gap, 1.2 % of the time; the longest is 3 h, from Tue 2026-11-03 06:00 on"
    assert lines[3] == "it repeats after a day (100 % of the ups and downs)"
    assert found_in_words(found_in(hours(1)), "UTC")[2:] == ["no gaps", "no season is seen in 1 day"]


def test_who_won_and_by_how_much_is_said(daily):
    assert chosen_in_words(daily).startswith(f"Chosen for 2 h ahead: {daily.selection.name}; its loss is ")
    assert "smaller than that of" in chosen_in_words(daily)
    assert judged_in_words(daily).startswith("Judged on ")


# --- as pictures


def test_a_picture_shows_the_past_and_the_fan_in_the_clocks_of_a_zone(daily):
    picture = picture_of(daily, "calls.csv", "Europe/Berlin")
    assert f"{picture.now:%Y-%m-%d %H:%M}" == "2026-11-12 01:00"
    assert picture.past_times[-1] < picture.now < picture.fan.times[0]
    assert [round(band.share, 2) for band in picture.fan.bands] == [0.95, 0.8, 0.5]
    assert picture.past[-1] == daily.found.series.values[-1] / HOUR
    assert picture.errors.horizons == ["1 h", "2 h", "6 h", "12 h"]


def test_a_long_past_is_averaged_and_a_spike_does_not_flatten_the_rest(monkeypatch):
    monkeypatch.setattr("autoscaler.outlook.picture.POINTS_MAX", 100)
    values = hours(25).values.copy()
    values[550] = 1e6
    done = study(found_in(Series(values, HOUR)), Wanted(ahead=10 * DAY, judge=False))
    picture = picture_of(done, "x", "UTC")
    assert len(picture.past) == 600 // 6
    assert picture.past.max() > 10 * picture.top


@pytest.mark.parametrize("start", [0.0, MONDAY])
def test_pictures_are_drawn_into_files(daily, tmp_path, start):
    series = daily.found.series
    again = study(found_in(Series(series.values, HOUR, start)), Wanted(judge=start > 0))
    picture = picture_of(again, "calls <b>.csv", "UTC")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        write_png(picture, tmp_path / "p.png")
    write_html(picture, tmp_path / "p.html")
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")
    page = (tmp_path / "p.html").read_text()
    assert "<title>calls &lt;b&gt;.csv</title>" in page
    assert "<script src" not in page
    assert page.count('"name":"50, 80, 95 % between"') == 2  # one entry of the legend: its edge and its area
