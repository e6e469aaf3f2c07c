"""The verdict in sentences, and what the replay teaches."""

import pytest

from autoscaler.replay.output.advice import advice
from autoscaler.replay.output.conflict import conflict_of
from autoscaler.replay.output.standing import Estimate
from autoscaler.replay.output.verdict import dearer, verdict
from autoscaler.replay.output.words import Price
from tests.fakes.replay_outcome import a_scenario, outcome_of, played, windows_of


def test_who_meets_it_is_told_at_what_cost_and_what_the_others_cost():
    outcome = outcome_of(
        played(gpu_hours=30.0),
        played("fixed", gpu_hours=60.0),
        played("hpa", 0.6, gpu_hours=32.7),
        played("hpa", 0.8, gpu_hours=27.0, bad_windows=0.031),
        price=Price(2.0, "$"),
    )
    assert verdict(outcome) == [
        "autoscaler meets the objective (99 % start within 5 s) at 1.50 × the clairvoyant bound, for $60.00.",
        "The cheapest of the others that meets it, hpa 0.60, costs 9 % more.",
        "A fleet for the peak, fixed, which meets it too, costs 100 % more.",
        "Who misses it, and the share of 5-minute windows that are bad: hpa 0.80 (3.1 %).",
    ]


def test_who_misses_it_is_told_by_how_much_and_who_does_not():
    outcome = outcome_of(
        played(gpu_hours=30.0, objective_met=0.982, bad_windows=0.05),
        played("hpa", 0.5, tried=True, gpu_hours=45.0),
    )
    head, cheapest = verdict(outcome)
    assert head == (
        "autoscaler misses the objective (99 % start within 5 s): 98.2 % start in time, and 5 % of the "
        "5-minute windows are bad; it costs 1.50 × the clairvoyant bound."
    )
    assert cheapest == (
        "The cheapest that meets it, hpa 0.50 with its target tuned in hindsight, costs 50 % more."
    )


def test_a_cheaper_peer_is_told_without_shame():
    outcome = outcome_of(played(gpu_hours=30.0), played("knative", 0.7, gpu_hours=28.5))
    assert verdict(outcome)[1] == "The cheapest of the others that meets it, knative 0.70, costs 5 % less."


def test_that_nobody_else_meets_it_is_told():
    outcome = outcome_of(played(), played("hpa", 0.8, bad_windows=0.2), played("keda", 0.7, bad_windows=0.3))
    assert verdict(outcome)[1] == "None of the 2 others meets it."


def test_what_did_not_finish_is_named():
    outcome = outcome_of(played(), missing=("hpa 0.80", "planner 1.00"))
    assert verdict(outcome)[-1] == "Ended early: hpa 0.80, planner 1.00 did not finish."
    assert verdict(outcome_of(played("fixed"), missing=("autoscaler",))) == [
        "The replay of autoscaler was not finished: there is no verdict.",
        "Ended early: autoscaler did not finish.",
    ]


@pytest.mark.parametrize(
    "difference, said",
    [
        (Estimate(0.094), "costs 9 % more"),
        (Estimate(-0.12, 0.021), "costs 12 ± 2.1 % less"),
        (Estimate(0.004), "costs the same"),
        (Estimate(float("nan")), "costs nothing to compare with"),
    ],
)
def test_differences_of_cost(difference, said):
    assert dearer(difference) == said


def test_what_the_forecast_is_worth_is_told():
    outcome = outcome_of(played(gpu_hours=30.0), played("no forecast", gpu_hours=33.0, bad_windows=0.04))
    assert (
        "Without its forecast autoscaler misses it (99.8 % start in time, and 4 % of the 5-minute"
        in (verdict(outcome)[1])
    )


# --- advice


def test_with_few_slots_the_wait_excludes_the_band_and_the_remedy_is_named():
    """2 erlangs and a p99 wait of 5 s with services of 10 s take 6 servers (Erlang C: of 5 servers 1.3 % of
    waits are longer), of which a third is busy."""
    few = played(windows=windows_of(load=2.0, replicas=5.0))
    problem, remedy = advice(outcome_of(few))
    assert problem.startswith("100 % of the time wait and band exclude one another: with less than ")
    assert "The wait was what bound in 70 % of the decisions." in problem
    assert "--slots" in remedy


def test_with_many_slots_both_can_be_kept():
    assert conflict_of(a_scenario(), played(windows=windows_of(load=60.0, replicas=90.0))) is None
    assert advice(outcome_of(played(windows=windows_of(load=60.0, replicas=90.0)))) == []


def test_from_the_load_that_is_named_on_both_can_be_kept():
    found = conflict_of(a_scenario(), played(windows=windows_of(load=2.0)))
    enough = found.offered_load_enough
    assert conflict_of(a_scenario(), played(windows=windows_of(load=1.01 * enough))) is None
    assert conflict_of(a_scenario(), played(windows=windows_of(load=0.99 * enough))).share == 1.0


def test_misses_while_replicas_start_ask_for_shorter_starts():
    windows = windows_of(load=60.0, replicas=90.0, met=0.8)
    windows.replicas_starting[:] = 3.0
    missed = played(windows=windows, objective_met=0.8, bad_windows=1.0)
    why, remedy, past = advice(outcome_of(missed))
    assert why.startswith("24 of 24 windows are bad, more than the 2 % that may be; in 100 % of them")
    assert "--cold-start 1m" in remedy
    assert "--history" in past
