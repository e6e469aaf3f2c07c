"""The nowcast: noise is ignored, a wrong forecast is overruled, bursts are told from changes."""

import json
import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forecasting import Dispersion, Gamma, Nowcast

NAN = math.nan


def poisson(rate, seconds, interval=10.0, seed=0):
    return np.random.default_rng(seed).poisson(rate * interval, int(seconds / interval)).tolist()


def show(nowcast, counts, expected_rate, interval=10.0):
    """Let the nowcast see counts; return what it held of the forecast after each."""
    ratios = []
    for count in counts:
        nowcast.update(count, None if expected_rate is None else expected_rate * interval, interval)
        ratios.append(nowcast.ratio.mean)
    return np.array(ratios)


def test_the_posterior_by_hand():
    nowcast = Nowcast(prior_cv=0.5, memory=60.0)  # Gamma(4, 4) before any count
    assert nowcast.ratio == Gamma(mean=1.0, variance=0.25)
    nowcast.update(12.0, 8.0, elapsed=10.0)
    assert nowcast.ratio.mean == pytest.approx((4 + 12) / (4 + 8))
    assert nowcast.ratio.variance == pytest.approx((4 + 12) / (4 + 8) ** 2)
    assert nowcast.rate.mean == pytest.approx(16 / 12 * 0.8)
    nowcast.update(NAN, 8.0, elapsed=60.0)  # the evidence fades to 37 %
    assert nowcast.ratio.mean == pytest.approx((4 + 12 / math.e) / (4 + 8 / math.e))


def test_without_a_forecast_the_rate_itself_is_filtered():
    nowcast = Nowcast(memory=60.0)
    nowcast.update(20.0, None, elapsed=10.0)
    nowcast.update(50.0, None, elapsed=10.0)
    kept = math.exp(-10 / 60)
    assert nowcast.rate.mean == pytest.approx((20 * kept + 50) / (10 * kept + 10))
    assert nowcast.ratio.mean == 1.0


@pytest.mark.parametrize("rate", [0.2, 1.0, 5.0, 50.0])
def test_a_good_forecast_ignores_poisson_noise(rate):
    nowcast = Nowcast()
    ratios = show(nowcast, poisson(rate, 3600), rate)
    assert ratios.std() < 0.12 and abs(ratios.mean() - 1) < 0.05
    assert nowcast.dispersion < 2.5


@pytest.mark.parametrize("wrong_by", [0.0, 0.3, 3.0, 5.0])
@pytest.mark.parametrize("rate", [5.0, 50.0])
def test_a_wrong_forecast_is_overruled_within_a_minute_or_two(rate, wrong_by):
    nowcast = Nowcast()
    show(nowcast, poisson(rate, 1200), rate)
    ratios = show(nowcast, poisson(rate * wrong_by, 120, seed=1), rate)
    assert ratios[-1] == pytest.approx(wrong_by, rel=0.15, abs=0.02)


def test_a_moderately_wrong_forecast_is_mostly_corrected_in_two_minutes():
    nowcast = Nowcast()
    show(nowcast, poisson(20.0, 1200), 20.0)
    assert show(nowcast, poisson(26.0, 120, seed=1), 20.0)[-1] == pytest.approx(1.3, abs=0.08)


def test_a_surprise_lets_the_observation_rule_alone_at_once():
    nowcast = Nowcast()
    show(nowcast, poisson(5.0, 600), 5.0)
    assert not nowcast.overruled
    nowcast.update(500.0, 50.0, elapsed=10.0)
    assert nowcast.overruled
    assert nowcast.rate.mean == pytest.approx(50.0)
    assert nowcast.ratio.mean == pytest.approx(10.0)


def test_calm_returns_only_after_a_full_window_without_surprise():
    nowcast = Nowcast(memory=60.0)
    show(nowcast, [50.0] * 30, 5.0)
    nowcast.update(400.0, 50.0, elapsed=10.0)
    overruled = []
    for _ in range(16):
        nowcast.update(50.0, 50.0, elapsed=10.0)
        overruled.append(nowcast.overruled)
    calm_from = overruled.index(False)
    # The burst is in the last 1, 2 or 4 intervals for up to 40 s; 60 s of calm follow.
    assert 6 <= calm_from + 1 <= 11
    assert not any(overruled[calm_from:])


def test_arrivals_that_stop_surprise_though_no_single_second_does():
    nowcast = Nowcast()
    show(nowcast, poisson(5.0, 300, interval=1.0), 5.0, interval=1.0)
    assert not nowcast.surprise(0.0, 5.0)
    show(nowcast, [0.0] * 10, 5.0, interval=1.0)
    assert nowcast.overruled and nowcast.rate.mean == pytest.approx(0.0, abs=0.7)


def test_bursty_arrivals_are_not_taken_for_a_change():
    rng, nowcast = np.random.default_rng(4), Nowcast()
    bursty = rng.poisson(rng.gamma(50 / 19, 19, 2000)).astype(float)  # variance 20 x the mean
    show(nowcast, bursty[:500], 5.0)
    rest = [show(nowcast, [count], 5.0)[0] for count in bursty[500:]]
    assert nowcast.dispersion > 8
    assert np.std(rest) < 0.2
    assert not nowcast.surprise(150.0, 50.0)
    assert Nowcast().surprise(150.0, 50.0)


def test_a_surprise_is_rare_on_what_was_predicted():
    rng, nowcast = np.random.default_rng(5), Nowcast()
    rates = rng.gamma(16, 1 / 16, 3000) * 30  # the forecast's own error, as stated
    assert np.mean([nowcast.surprise(float(count), 30.0) for count in rng.poisson(rates)]) < 1e-3


def test_the_first_request_of_a_night_is_no_surprise_and_many_are():
    nowcast = Nowcast()
    assert not nowcast.surprise(1.0, 0.0)
    assert nowcast.surprise(10.0, 0.0)


def test_missing_counts_bring_the_forecast_back():
    nowcast = Nowcast()
    show(nowcast, [65.0] * 12, 5.0)
    assert nowcast.ratio.mean > 1.2
    show(nowcast, [NAN] * 60, 5.0)
    assert nowcast.ratio.mean == pytest.approx(1.0, abs=0.01)


def test_a_forecast_that_has_learned_is_not_corrected_a_second_time():
    nowcast = Nowcast()
    show(nowcast, [65.0] * 30, 5.0)
    rate = nowcast.rate.mean
    nowcast.rebase(1.3)
    assert nowcast.ratio.mean == pytest.approx(1.0, abs=0.06)
    assert nowcast.rate.mean == pytest.approx(rate, rel=0.06)


def test_before_any_count_there_is_no_rate():
    with pytest.raises(ValueError, match="seen no count"):
        _ = Nowcast().rate


events = st.tuples(
    st.one_of(st.just(NAN), st.floats(0, 1e9)),
    st.one_of(st.none(), st.just(0.0), st.floats(0, 1e9)),
    st.floats(0.1, 1e5),
)


@settings(max_examples=50)
@given(st.lists(events, min_size=1, max_size=20))
def test_any_events_leave_a_finite_ratio_and_an_equal_copy(given_events):
    nowcast = Nowcast()
    nowcast.update(1.0, None, 1.0)
    for event in given_events:
        nowcast.update(*event)
        assert math.isfinite(nowcast.ratio.mean) and math.isfinite(nowcast.ratio.quantile(0.99))
    restored = Nowcast.from_state(json.loads(json.dumps(nowcast.to_state(), allow_nan=False)))
    for copy in (restored, pickle.loads(pickle.dumps(nowcast))):
        copy.update(3.0, 4.0, 10.0)
    nowcast.update(3.0, 4.0, 10.0)
    assert restored.ratio == copy.ratio == nowcast.ratio and restored.rate == nowcast.rate


@pytest.mark.parametrize(
    ("event", "match"),
    [
        ((-1.0, 1.0, 1.0), "count"),
        ((1.0, -1.0, 1.0), "expected_count"),
        ((1.0, NAN, 1.0), "expected_count"),
        ((1.0, 1.0, 0.0), "elapsed"),
    ],
)
def test_impossible_events_are_refused(event, match):
    with pytest.raises(ValueError, match=match):
        Nowcast().update(*event)


@pytest.mark.parametrize("arguments", [(0.0, 60.0), (0.25, 0.0), (NAN, 60.0)])
def test_impossible_parameters_are_refused(arguments):
    with pytest.raises(ValueError, match="need"):
        Nowcast(*arguments)


@pytest.mark.parametrize("factor", [0.0, -1.0, math.inf])
def test_a_forecast_is_revised_by_a_positive_factor(factor):
    with pytest.raises(ValueError, match="factor"):
        Nowcast().rebase(factor)


@pytest.mark.parametrize("mean", [0.3, 5.0, 500.0])
def test_poisson_counts_have_dispersion_one(mean):
    dispersion = Dispersion()
    values = []
    for count in np.random.default_rng(6).poisson(mean, 3000).tolist():
        dispersion.update(float(count), 10.0)
        values.append(dispersion.mean_)
    assert np.mean(values) == pytest.approx(1.0, abs=0.1)


def test_dispersion_does_not_mind_the_shape_of_the_day_nor_intervals_of_other_lengths():
    rng, dispersion, values = np.random.default_rng(7), Dispersion(), []
    for t in range(3000):
        exposure = (1 + 0.9 * math.sin(t / 50)) * rng.uniform(5, 15)
        dispersion.update(float(rng.poisson(20 * exposure)), exposure)
        values.append(dispersion.mean_)
    assert np.mean(values) == pytest.approx(1.0, abs=0.1)


def test_one_jump_of_the_level_is_one_difference():
    dispersion = Dispersion()
    for count in [100.0] * 50 + [1000.0] * 50:
        dispersion.update(count, 10.0)
    assert dispersion.value == 1.0


def test_nothing_is_compared_across_a_hole():
    dispersion = Dispersion()
    for count in (100.0, NAN, 900.0):
        dispersion.update(count, 10.0)
    assert dispersion.value == 1.0
