"""The controller of production where supply ends and comes back: it stops ordering, and begins anew."""

import numpy as np

from autoscaler.domain import Objective, Reason
from autoscaler.replay.policies.own import OwnPolicy
from autoscaler.replay.run import replay
from autoscaler.replay.scenario import Scenario

HOUR = 3600.0
RATE = 1.0  # 20 erlangs


def a_replay(**supply):
    """Four hours of steady load that needs about thirty replicas, then two hours with next to none."""
    counts = np.concatenate([np.full(240, 60.0 * RATE), np.zeros(120)])
    scenario = Scenario(
        counts,
        60.0,
        service_time_mean=20.0,
        cold_start_mean=60.0,
        objective=Objective(wait_seconds=30.0),
        replicas_initial=2,
        **supply,
    )
    return replay(scenario, OwnPolicy(scenario), seed=1)


def ticks(record, since, until):
    return [tick for tick in record.ticks if since < tick[0] <= until]


def test_f6_with_a_ceiling_no_more_is_ordered_than_there_is_and_a_probe():
    record = a_replay(supply_max=6)
    for now, _, _, ready, starting, _ in ticks(record, 0.5 * HOUR, 4 * HOUR):
        assert (ready, starting <= 1) == (6, True), now
    reasons = [decision.reason for now, decision in record.decisions if HOUR < now < 4 * HOUR]
    assert set(reasons) == {Reason.SUPPLY_SHORT}


def test_supply_that_returns_is_ordered_again_and_used():
    record = a_replay(supply_max=6, supply_changes=((2 * HOUR, 1000),))
    assert {ready for _, _, _, ready, _, _ in ticks(record, HOUR, 2 * HOUR)} == {6}
    assert ticks(record, 2 * HOUR, 2.4 * HOUR)[-1][3] >= 20 / 0.75
    last = [decision for now, decision in record.decisions if now < 3.9 * HOUR][-1]
    assert last.reason in (Reason.WITHIN_BAND, Reason.FEWEST_FOR_WAIT, Reason.SURVIVORS_OVERLOADED)


def test_what_is_pending_goes_with_the_load():
    record = a_replay(supply_max=25)
    assert ticks(record, 3.5 * HOUR, 4 * HOUR)[-1][3] == 25
    assert all(starting == 0 for _, _, _, _, starting, _ in ticks(record, 4.1 * HOUR, 6 * HOUR))
    assert ticks(record, 0.0, 6 * HOUR)[-1][3] == 1
