"""Who meets the objective, who does so cheapest, and what several seeds tell."""

from math import isnan

import numpy as np
import pytest

from autoscaler.replay.output.standing import Estimate
from tests.fakes.replay_outcome import outcome_of, played


@pytest.mark.parametrize(
    "met, bad, meets",
    [(0.99, 0.02, True), (0.9899, 0.0, False), (1.0, 0.021, False), (0.999, 0.0, True)],
)
def test_the_objective_is_met_if_enough_start_in_time_and_next_to_no_window_is_bad(met, bad, meets):
    outcome = outcome_of(played(objective_met=met, bad_windows=bad))
    assert outcome.own.meets is meets


def test_the_cheapest_of_the_others_is_the_cheapest_that_meets_it():
    outcome = outcome_of(
        played(gpu_hours=30.0),
        played("hpa", 0.8, gpu_hours=25.0, bad_windows=0.1),
        played("hpa", 0.6, gpu_hours=34.0),
        played("fixed", gpu_hours=50.0),
    )
    assert outcome.cheapest_peer.name == "hpa 0.60"
    assert outcome.fixed.name == "fixed"


def test_of_a_sweep_only_the_best_is_shown_beside_who_was_asked_for():
    outcome = outcome_of(
        played(),
        played("hpa", 0.8, gpu_hours=25.0, bad_windows=0.1),
        played("hpa", 0.4, tried=True, gpu_hours=60.0),
        played("hpa", 0.6, tried=True, gpu_hours=34.0),
        played("hpa", 0.9, tried=True, gpu_hours=20.0, bad_windows=0.4),
    )
    assert [each.name for each in outcome.shown] == ["autoscaler", "hpa 0.80", "hpa 0.60"]
    assert outcome.cheapest_peer.name == "hpa 0.60"


def test_if_no_target_meets_it_the_best_is_the_one_with_the_fewest_bad_windows():
    outcome = outcome_of(
        played(),
        played("hpa", 0.8, bad_windows=0.3),
        played("hpa", 0.4, tried=True, gpu_hours=60.0, bad_windows=0.05),
    )
    assert outcome.tuned["hpa"].name == "hpa 0.40"
    assert outcome.cheapest_peer is None


def test_a_picture_shows_at_first_ours_a_fixed_fleet_and_the_best_of_the_others():
    outcome = outcome_of(
        played(),
        played("hpa", 0.8, bad_windows=0.3),
        played("knative", 0.7, bad_windows=0.1),
        played("fixed"),
    )
    assert [each.name for each in outcome.compared] == ["autoscaler", "fixed", "knative 0.70"]


def test_one_seed_tells_no_confidence_interval():
    assert isnan(Estimate.of([3.0]).half_width)


# Student's t with 2 degrees of freedom, 0.975 quantile: 4.303 (any table). Of 1, 2, 3 the standard deviation
# is 1, so the half width is 4.303 / sqrt(3).
def test_the_confidence_interval_is_that_of_student():
    estimate = Estimate.of([1.0, 2.0, 3.0])
    assert (estimate.mean, estimate.half_width) == (2.0, pytest.approx(4.303 / 3**0.5, rel=1e-3))


def test_such_intervals_hold_the_truth_nineteen_times_of_twenty():
    rng = np.random.default_rng(6)
    held = 0
    for _ in range(2000):
        estimate = Estimate.of(rng.normal(7.0, 2.0, 5))
        held += abs(estimate.mean - 7.0) <= estimate.half_width
    assert held / 2000 == pytest.approx(0.95, abs=0.015)  # 3 standard errors


def test_costs_are_compared_seed_by_seed_so_that_a_busy_day_does_not_blur_them():
    """Twice the demand costs both twice as much; that one is 10 % dearer is seen exactly."""
    replays = []
    for seed, demand in enumerate((20.0, 40.0, 80.0)):
        replays += [
            played(seed=seed, gpu_hours=demand),
            played("hpa", 0.5, seed=seed, gpu_hours=1.1 * demand),
        ]
    outcome = outcome_of(*replays)
    dearer = outcome.peers[0].dearer_than(outcome.own)
    assert (dearer.mean, dearer.half_width) == (pytest.approx(0.1), pytest.approx(0.0, abs=1e-9))
    assert outcome.own.figures["gpu_hours"].half_width > 10.0


def test_the_multiple_is_of_the_bound_of_the_same_seed():
    outcome = outcome_of(
        played(seed=0, gpu_hours=30.0, clairvoyant_gpu_hours=20.0),
        played(seed=1, gpu_hours=60.0, clairvoyant_gpu_hours=40.0),
    )
    assert outcome.own.multiple.mean == 1.5
    assert outcome.seeds == 2


def test_where_nothing_came_there_is_no_multiple():
    assert isnan(outcome_of(played(clairvoyant_gpu_hours=0.0)).own.multiple.mean)
