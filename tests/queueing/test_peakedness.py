import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.queueing import ggc
from autoscaler.queueing.peakedness import (
    arrival_scv_for_peakedness,
    peakedness,
    peakedness_of_counts,
    peakedness_of_modulated,
)
from load.bench.queue_simulation import gamma_law, simulate_waits


@given(st.floats(0, 10))
def test_poisson_arrivals_are_no_peak(service_scv):
    assert peakedness(1.0, service_scv) == 1.0


@given(st.floats(0.05, 10), st.floats(0, 10))
def test_the_arrival_scv_for_a_peakedness_has_that_peakedness(arrival_scv, service_scv):
    z = peakedness(arrival_scv, service_scv)
    assert arrival_scv_for_peakedness(z, service_scv) == pytest.approx(arrival_scv)


def in_service(arrival_times, service, at):
    """Requests in service at each time, with servers without end."""
    ends = arrival_times + service
    return np.searchsorted(np.sort(arrival_times), at) - np.searchsorted(np.sort(ends), at)


@pytest.mark.parametrize("arrival_scv", [0.25, 1.0, 4.0])
@pytest.mark.parametrize("service_scv", [0.0, 1.0, 4.0])
def test_renewal_peakedness_is_that_of_the_number_in_service(arrival_scv, service_scv):
    rng, n, rate = np.random.default_rng(3), 400_000, 50.0
    arrivals = np.cumsum(gamma_law(1 / rate, arrival_scv)(rng, (n, 1)).ravel())
    number = in_service(
        arrivals, gamma_law(1.0, service_scv)(rng, (n, 1)).ravel(), np.arange(50.0, n / rate, 0.5)
    )
    assert peakedness(arrival_scv, service_scv) == pytest.approx(number.var() / number.mean(), rel=0.15)


def modulated_arrivals(rng, rates, switch_rate, length):
    """Poisson arrivals whose rate alternates between two values, each for exponential times."""
    switches = np.cumsum(rng.exponential(1 / switch_rate, int(2 * length * switch_rate) + 10))
    n = rng.poisson(max(rates) * length)
    times = np.sort(rng.uniform(0, length, n))
    rate = np.array(rates)[np.searchsorted(switches, times) % 2]
    return times[rng.uniform(0, max(rates), n) < rate]


def test_swelling_rates_have_the_peakedness_stated_and_counted():
    rng, length, switch_rate = np.random.default_rng(4), 40_000.0, 0.1
    arrivals = modulated_arrivals(rng, (2.0, 18.0), switch_rate, length)
    stated = peakedness_of_modulated(10.0, 8.0, burst_time=1 / (2 * switch_rate), service_time_mean=2.0)
    number = in_service(arrivals, rng.exponential(2.0, len(arrivals)), np.arange(50.0, length, 2.0))
    assert stated == pytest.approx(number.var() / number.mean(), rel=0.08)
    counts = np.histogram(arrivals, np.arange(0, length, 0.5))[0]
    assert peakedness_of_counts(counts, interval=0.5, service_time_mean=2.0) == pytest.approx(
        stated, rel=0.08
    )


def test_bursts_that_are_not_renewal_are_sized_by_their_peakedness():
    """Modulated arrivals to 30 servers: the formula for G/G/c with the SCV that their peakedness gives."""
    rng, length, switch_rate = np.random.default_rng(5), 8_000.0, 1.0
    gaps = np.diff(modulated_arrivals(rng, (8.0, 32.0), switch_rate, length), prepend=0.0)
    taken = iter(gaps)
    waits = simulate_waits(
        30,
        lambda rng, shape: np.fromiter(taken, float, shape[0]).reshape(shape),
        gamma_law(1.0, 1.0),
        customers=len(gaps) - 3000,
        warm_up=2000,
        copies=1,
        rng=rng,
    )
    z = peakedness_of_modulated(20.0, 12.0, burst_time=1 / (2 * switch_rate), service_time_mean=1.0)
    scv = arrival_scv_for_peakedness(z, service_scv=1.0)
    expected = ggc.probability_of_wait(30, 20.0, 1.0, arrival_scv=scv)
    assert np.mean(waits > 1e-9) == pytest.approx(expected, rel=0.35)
    assert expected > 3 * ggc.probability_of_wait(30, 20.0, 1.0)


def test_counts_of_poisson_arrivals_are_no_peak_and_even_ones_are_below():
    rng = np.random.default_rng(6)
    assert peakedness_of_counts(rng.poisson(5.0, 20_000), 1.0, 10.0) == pytest.approx(1.0, abs=0.06)
    assert peakedness_of_counts(np.full(200, 5), 1.0, 10.0) == pytest.approx(0.5, abs=0.05)
    assert peakedness_of_counts(np.zeros(200), 1.0, 10.0) == 1.0


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda: peakedness(10.1, 1.0), "0 <= arrival_scv <= 10"),
        (lambda: peakedness(1.0, -1.0), "0 <= service_scv <= 10"),
        (lambda: arrival_scv_for_peakedness(30.0, 1.0), "that an SCV in"),
        (lambda: peakedness_of_counts(np.ones(100), 20.0, 10.0), "interval <= service_time_mean"),
        (lambda: peakedness_of_counts(np.ones(99), 1.0, 10.0), "10 service_time_mean"),
        (lambda: peakedness_of_modulated(0.0, 1.0, 1.0, 1.0), "rate_mean > 0"),
    ],
)
def test_beyond_its_range_it_says_so(call, text):
    with pytest.raises(ValueError, match=text):
        call()
