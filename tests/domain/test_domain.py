"""The nouns refuse what cannot be, and decisions speak in sentences."""

from dataclasses import replace

import pytest

from autoscaler.domain import Binding, Fleet, Hold, Numbers, Objective, Reason, ScaleTo


@pytest.mark.parametrize(
    "bad",
    [
        {"utilization_low": 0.8, "utilization_high": 0.7},
        {"utilization_low": 0.0},
        {"utilization_high": 1.1},
        {"wait_seconds": -1.0},
        {"wait_quantile": 1.0},
        {"wait_quantile": float("nan")},
    ],
)
def test_an_impossible_objective_is_refused(bad):
    with pytest.raises(ValueError, match="need"):
        Objective(**bad)


@pytest.mark.parametrize(
    "counts",
    [(-1, 0, 0, 1), (0, -1, 0, 1), (0, 0, -1, 1), (0, 0, 0, 0)],
)
def test_an_impossible_fleet_is_refused(counts):
    with pytest.raises(ValueError, match="need"):
        Fleet(*counts, cold_start_mean=1.0, cold_start_p90=1.0)


def test_ordered_replicas_are_those_of_use_now_or_soon():
    assert Fleet(3, 2, 4, 1, cold_start_mean=1.0, cold_start_p90=1.0).ordered == 5


NUMBERS = Numbers(
    arrival_rate=1.0,
    forecast_rate=1.2,
    service_time_mean=10.0,
    offered_load=12.0,
    lead_time=90.0,
    servers_for_wait=15,
    servers_for_band=16,
    utilization_expected=0.71,
)


def test_a_decision_is_a_sentence_with_its_numbers_and_what_binds():
    decision = ScaleTo(17, 14, Reason.DEMAND_RISES, Binding.BAND, NUMBERS)
    assert str(decision) == (
        "Scale up from 14 to 17 replicas: demand rises; 1.2/s expected in 90 s (now 1/s) x 10 s "
        "= 12 erlangs; the band asks 16 slots, the wait 15; the utilization band binds; 71% busy expected."
    )


def test_a_decision_tells_what_it_would_have_been_and_until_when_it_will_do():
    numbers = replace(NUMBERS, replicas_aim=17, replicas_as_forecast=14, next_change_in=540.0)
    assert str(ScaleTo(17, 14, Reason.DEMAND_RISES, Binding.BAND, numbers)).endswith(
        "71% busy expected; the best is 17, or 14 had the last minutes been as forecast; "
        "the next change is expected in about 9 min."
    )


def test_a_decision_tells_for_how_much_another_pool_stands_in_and_for_how_much_this_one_does():
    short = str(Hold(3, Reason.SUPPLY_SHORT, Binding.SUPPLY, replace(NUMBERS, substituted_share=0.43)))
    assert "; another pool stands in for 43% of the demand; " in short
    spare = str(Hold(3, Reason.WITHIN_BAND, Binding.BAND, replace(NUMBERS, standing_in_rate=2.1)))
    assert "; it stands in for 2.1/s of pools that are short; " in spare


def test_a_pool_that_sleeps_is_said_to_and_next_to_nothing_has_no_digits():
    quiet = replace(NUMBERS, forecast_rate=4.86e-06, arrival_rate=0.0, offered_load=2.4e-06)
    sentence = str(Hold(0, Reason.WITHIN_BAND, Binding.NONE, quiet))
    assert sentence.startswith("Hold 0 replicas: nobody asks; it sleeps; <0.01/s expected in ")
    assert "(now 0/s)" in sentence
    assert "= <0.01 erlangs" in sentence
    fresh = Hold(0, Reason.SERVICE_TIME_UNKNOWN, Binding.NONE)
    assert str(fresh) == "Hold 0 replicas: nobody asks; it sleeps."


def test_what_is_not_known_is_left_out_of_the_sentence():
    assert str(Hold(1, Reason.METRICS_LOST, Binding.NONE)) == (
        "Hold 1 replica: no measurement came, and what is not known is not changed."
    )


@pytest.mark.parametrize("reason", list(Reason))
@pytest.mark.parametrize("binding", list(Binding))
def test_every_reason_and_constraint_has_words(reason, binding):
    for decision in (Hold(2, reason, binding, NUMBERS), ScaleTo(2, 3, reason, binding, NUMBERS)):
        sentence = str(decision)
        assert sentence.endswith(".")
        assert ";;" not in sentence
