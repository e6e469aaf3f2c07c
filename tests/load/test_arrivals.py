"""Arrival laws: counts and dispersion as the laws say, traces as they stand in the file."""

import gzip

import numpy as np
import pytest

from load.arrivals import DayShape, constant, day_shape, faster, of_counts, poisson, varying
from load.services import deterministic, exponential, lognormal
from load.traces import TraceError, read_arrivals


def rng():
    return np.random.default_rng(7)


def dispersion(arrivals, duration, window=1.0):
    """Variance / mean of the counts per window."""
    counts, _ = np.histogram(arrivals, np.arange(0, duration + window / 2, window))
    return counts.var() / counts.mean()


def test_constant_arrivals_are_evenly_spaced_and_start_at_once():
    assert constant(rate=4.0, duration=1.0) == pytest.approx([0.0, 0.25, 0.5, 0.75])
    assert constant(rate=0.0, duration=5.0).size == 0


def test_poisson_arrivals_have_the_mean_and_the_variance_of_their_law():
    arrivals = poisson(rate=20.0, duration=2000.0, rng=rng())
    assert arrivals.size == pytest.approx(40_000, abs=4 * 200)  # four standard deviations
    assert dispersion(arrivals, 2000.0) == pytest.approx(1.0, abs=4 * np.sqrt(2 / 2000))
    assert np.all(np.diff(arrivals) >= 0)
    assert arrivals[0] >= 0 and arrivals[-1] < 2000.0


def test_gaps_of_poisson_arrivals_are_exponential():
    gaps = np.diff(poisson(rate=5.0, duration=10_000.0, rng=rng()))
    assert gaps.mean() == pytest.approx(0.2, rel=0.02)
    assert gaps.var() / gaps.mean() ** 2 == pytest.approx(1.0, rel=0.05)


def test_thinning_follows_the_rate():
    arrivals = varying(lambda t: 10.0 * (t < 500), rate_max=10.0, duration=1000.0, rng=rng())
    assert arrivals.size == pytest.approx(5000, abs=4 * 71)
    assert arrivals[-1] < 500.0


def test_a_rate_beyond_its_stated_maximum_is_refused_not_cut():
    with pytest.raises(ValueError, match="rate_max = 5"):
        varying(lambda t: np.full_like(t, 6.0), rate_max=5.0, duration=100.0, rng=rng())


def test_the_same_seed_gives_the_same_arrivals():
    assert np.array_equal(poisson(3.0, 50.0, rng()), poisson(3.0, 50.0, rng()))


# The figures that the docstring of DayShape states.
@pytest.mark.parametrize(
    "hour, height",
    [(19.4, 1.0), (10.5, 0.87), (13.42, 0.47), (3.0, 0.17)],
    ids=["peak", "morning", "lunch", "night"],
)
def test_the_day_has_the_shape_that_it_states(hour, height):
    assert day_shape(np.array([hour / 24])) == pytest.approx([height], abs=0.006)


def test_the_day_has_the_mean_that_it_states_and_never_exceeds_its_peak():
    shape = DayShape(rate_peak=1.0, day=24.0)
    assert shape.rate_mean == pytest.approx(0.489, abs=0.001)
    assert shape.rate(np.linspace(0, 48, 4801)).max() == pytest.approx(1.0, abs=1e-4)
    assert shape.rate(np.linspace(0, 48, 4801)).max() <= 1.0 + 1e-9


def test_days_repeat_and_bring_as_many_requests_as_their_mean_says():
    shape = DayShape(rate_peak=50.0, day=100.0)
    arrivals = varying(shape.rate, shape.rate_peak, 400.0, rng())
    assert arrivals.size == pytest.approx(400.0 * shape.rate_mean, abs=4 * np.sqrt(400 * 25))
    assert shape.rate(np.array([30.0])) == pytest.approx(shape.rate(np.array([130.0])))


def test_counts_are_kept_exactly_and_spread_over_their_interval():
    arrivals = of_counts(np.array([0.0, 60.0, 120.0]), np.full(3, 60.0), np.array([3, 0, 1000]), rng())
    assert np.sum(arrivals < 60) == 3 and np.sum((arrivals >= 120) & (arrivals < 180)) == 1000
    assert arrivals[3:].mean() == pytest.approx(150.0, abs=4 * 60 / np.sqrt(12 * 1000))


def test_a_trace_at_twice_the_speed_takes_half_the_time():
    assert faster(np.array([0.0, 4.0]), 2.0) == pytest.approx([0.0, 2.0])
    with pytest.raises(ValueError, match="speed"):
        faster(np.array([0.0]), 0.0)


def test_a_request_trace_is_replayed_from_its_first_request(tmp_path):
    trace = tmp_path / "trace.csv"
    trace.write_text("arrival_s,input_tokens\n5,374\n9.5,12\n7,1\n")
    assert read_arrivals(trace, rng()) == pytest.approx([0.0, 2.0, 4.5])


def test_a_compressed_series_gives_its_counts(tmp_path):
    trace = tmp_path / "series.csv.gz"
    trace.write_bytes(
        gzip.compress(b"start_s,interval_s,requests,filled\n0,60,42,0\n60,60,0,1\n120,60,7,0\n")
    )
    counts, _ = np.histogram(read_arrivals(trace, rng()), [0, 60, 120, 180])
    assert counts.tolist() == [42, 0, 7]


@pytest.mark.parametrize(
    "text, complaint",
    [
        ("time,size\n1,2\n", "needs arrival_s, or start_s"),
        ("arrival_s\n1\nsoon\n", "row 3: arrival_s is 'soon'"),
        ("arrival_s\n-1\n", "row 2: arrival_s is '-1'"),
        ("start_s,interval_s,requests\n0,60\n", "row 2: requests is ''"),
        ("", "(none)"),
    ],
)
def test_a_file_that_is_no_trace_is_refused_with_the_place(tmp_path, text, complaint):
    trace = tmp_path / "trace.csv"
    trace.write_text(text)
    with pytest.raises(TraceError) as refused:
        read_arrivals(trace, rng())
    assert complaint in str(refused.value)


def test_a_damaged_archive_is_refused(tmp_path):
    trace = tmp_path / "trace.csv.gz"
    trace.write_bytes(gzip.compress(b"arrival_s\n1\n")[:-6])
    with pytest.raises(TraceError, match="cannot be read"):
        read_arrivals(trace, rng())


@pytest.mark.parametrize(
    "law, mean, scv",
    [
        (deterministic(0.5), 0.5, 0.0),
        (exponential(2.0), 2.0, 1.0),
        (lognormal(0.6, 0.4), 0.6, 0.4),
        (lognormal(0.6, 0.0), 0.6, 0.0),
    ],
)
def test_service_times_have_the_mean_and_scv_of_their_law(law, mean, scv):
    source = rng()
    drawn = np.array([law(source) for _ in range(40_000)])
    assert drawn.mean() == pytest.approx(mean, rel=0.02)
    assert drawn.var() / drawn.mean() ** 2 == pytest.approx(scv, rel=0.06, abs=1e-12)
