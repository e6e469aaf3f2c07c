"""What is replayed."""

import numpy as np
import pytest

from autoscaler.errors import UsageError
from autoscaler.replay.scenario import INTERVALS_MAX, REQUESTS_MAX, Scenario


def test_arrivals_lie_in_their_intervals_and_services_follow_their_law():
    scenario = Scenario(np.array([3.0, 0.0, 2.0]), 10.0, service_time_mean=4.0, service_scv=0.5)
    times = scenario.arrival_times(np.random.default_rng(1))
    assert np.histogram(times, bins=[0, 10, 20, 30])[0].tolist() == [3, 0, 2]
    services = scenario.service_times(200_000, np.random.default_rng(1))
    assert services.mean() == pytest.approx(4.0, rel=0.01)
    assert services.var() / services.mean() ** 2 == pytest.approx(0.5, rel=0.03)


def test_a_service_without_variance_is_a_constant():
    scenario = Scenario(np.array([1.0]), 1.0, service_time_mean=4.0, service_scv=0.0)
    assert set(scenario.service_times(10, np.random.default_rng(1))) == {4.0}


@pytest.mark.parametrize(
    "counts, interval, said",
    [
        ([REQUESTS_MAX, 1.0], 10.0, "50,000,001 requests are more than the 50,000,000"),
        ([1.0, 1.0], 10.0 * INTERVALS_MAX, "more than the 5,000,000 intervals"),
    ],
)
def test_a_replay_without_end_is_refused(counts, interval, said):
    with pytest.raises(UsageError, match=said):
        Scenario(np.array(counts), interval, service_time_mean=1.0).check_size()
    half = np.array(counts[:1])
    Scenario(half, interval, service_time_mean=1.0).check_size()
