"""The Predictive HPA: what came yesterday at this time is asked for before it comes."""

import numpy as np
import pytest

from autoscaler.replay.policies.predictive_hpa import ENTRIES_MIN, PredictiveHpaPolicy, predicted_replicas
from autoscaler.replay.scenario import Scenario
from tests.fakes.seen_by_peers import a_fleet, answers, seen

DAY = [4] * 144 + [12] * 144


def test_holt_winters_repeats_a_day_that_repeats():
    assert predicted_replicas(DAY * 3) == 4
    assert predicted_replicas(DAY * 3 + DAY[:144]) == 12


def test_it_needs_more_than_a_season():
    assert ENTRIES_MIN == 298


@pytest.mark.parametrize("days, replicas", [(3, 14), (0, 5)])
def test_it_asks_for_yesterdays_rise_ahead_of_it(days, replicas):
    """The last entry of the low half has been made; the HPA alone sees 3.6 busy at
    0.8, which is one more than there was, and the trend adds to it."""
    history = np.array((DAY * days + DAY[:143]) if days else [], dtype=float) * 0.8 * 300 / 10
    scenario = Scenario(np.ones(60), 1.0, service_time_mean=10.0, history=history)
    counts = answers(PredictiveHpaPolicy(scenario), lambda now: seen(busy=3.6), until=60.0, ready=4)
    assert counts[-1] == replicas


def test_it_does_not_move_before_there_is_a_metric():
    scenario = Scenario(np.ones(60), 1.0, service_time_mean=10.0)
    assert PredictiveHpaPolicy(scenario).decide(seen(busy=3.2), a_fleet(4), 15.0) is None
