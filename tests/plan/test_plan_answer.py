"""How many replicas: what binds, which is recommended, and which sizes are shown around it."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.domain.decision import Binding
from autoscaler.plan.answer import answer
from autoscaler.plan.conflict import conflict_of
from autoscaler.plan.one_by_one import Impatient, OneByOne
from autoscaler.plan.question import Band, Question, WaitBound
from autoscaler.plan.search import fewest
from autoscaler.plan.together import Batches, Continuous
from autoscaler.queueing.batch_line import BatchLine
from autoscaler.queueing.bulk import batches_at_once
from autoscaler.queueing.continuous_batching import StepLine
from autoscaler.queueing.impatience import ExponentialPatience, FixedPatience, impatient_queue
from autoscaler.queueing.staffing import servers_for_mean_wait, servers_for_wait
from autoscaler.queueing.utilization_band import band_servers


def asked(rate: float = 1.0, service_time: float = 10.0, **more) -> Question:
    return Question(rate, OneByOne(service_time), **more)


# The two figures of the product: 10 erlangs / 0.75 … / 0.60, and Erlang C (Cooper 1981) to three digits.
def test_ten_erlangs_ask_fourteen_to_sixteen_servers_of_the_band():
    found = answer(asked())
    assert (found.needs.band_least, found.needs.band_most) == (14, 16)
    waits = {row.servers: round(row.probability_of_wait, 3) for row in found.rows}
    assert {c: waits[c] for c in range(12, 17)} == {12: 0.449, 13: 0.285, 14: 0.174, 15: 0.102, 16: 0.057}


def test_the_smallest_size_that_keeps_wait_and_band_is_recommended():
    found = answer(asked())  # p99 of 5 s
    assert (found.recommended.servers, found.binding) == (15, Binding.WAIT)
    assert found.recommended.keeps_wait
    assert found.recommended.in_band
    assert not found.row(14).keeps_wait


def test_the_band_binds_where_the_wait_would_do_with_fewer():
    found = answer(asked(wait=WaitBound(30.0)))
    assert (found.needs.wait, found.recommended.servers, found.binding) == (12, 14, Binding.BAND)


def test_nothing_binds_where_fewer_could_not_do_the_work():
    found = answer(asked(rate=0.0005))
    assert (found.recommended.servers, found.binding) == (1, Binding.NONE)


@pytest.mark.parametrize(
    "bounds, size, binding",
    [
        ({"replicas_min": 20}, 20, Binding.REPLICAS_MIN),
        ({"replicas_min": 3}, 15, Binding.WAIT),
        ({"replicas_max": 12}, 12, Binding.REPLICAS_MAX),
        ({"replicas_max": 15}, 15, Binding.WAIT),
    ],
)
def test_the_fleet_has_bounds(bounds, size, binding):
    found = answer(asked(**bounds))
    assert (found.recommended.replicas, found.binding) == (size, binding)


def test_a_fleet_that_may_not_be_large_enough_waits_without_end():
    row = answer(asked(replicas_max=9)).recommended
    assert math.isinf(row.wait_mean)
    assert (row.probability_of_wait, row.keeps_wait, row.in_band) == (1.0, False, False)


def test_a_mean_wait_can_be_the_objective():
    found = answer(asked(wait=WaitBound(1.0, None)))
    assert found.needs.wait == servers_for_mean_wait(1.0, 10.0, 1.0)
    assert found.recommended.wait_bound == found.recommended.wait_mean


def test_replicas_are_whole_and_servers_are_their_slots():
    found = answer(Question(1.0, OneByOne(10.0, slots_per_replica=4), price=2.0))
    assert [row.servers for row in found.rows] == [4 * row.replicas for row in found.rows]
    assert (found.recommended.replicas, found.recommended.servers) == (4, 16)
    assert found.recommended.cost_per_hour == 8.0


def test_without_a_price_cost_is_replica_hours():
    assert answer(asked()).recommended.cost_per_hour == 15.0


@pytest.mark.parametrize("load", [1.0, 50_000.0])
def test_small_and_huge_fleets_show_a_few_sizes_with_the_recommended_one_among_them(load):
    found = answer(asked(rate=load / 10))
    sizes = [row.replicas for row in found.rows]
    assert found.recommended in found.rows
    assert sizes == sorted(set(sizes))
    assert len(sizes) <= 16
    assert {found.needs.wait, found.needs.band_least} <= set(sizes)


def test_fifty_thousand_erlangs_are_bound_by_the_band():
    found = answer(asked(rate=5000.0))
    assert (found.recommended.servers, found.binding) == (66_667, Binding.BAND)
    assert found.recommended.wait_p99 == 0.0


@given(
    rate=st.floats(0.01, 50.0),
    seconds=st.floats(0.1, 60.0),
    quantile=st.floats(0.5, 0.999),
    service_scv=st.floats(0.0, 10.0),
    arrival_scv=st.floats(0.0, 10.0),
)
def test_needs_are_those_of_the_queueing_library(rate, seconds, quantile, service_scv, arrival_scv):
    service = OneByOne(10.0, service_scv, arrival_scv)
    needs = answer(Question(rate, service, WaitBound(seconds, quantile))).needs
    assert needs.wait == servers_for_wait(
        rate, 10.0, seconds, quantile, arrival_scv=arrival_scv, service_scv=service_scv
    )
    least, most = band_servers(rate * 10.0, 0.60, 0.75)
    first = math.floor(rate * 10.0) + 1
    assert (needs.band_least, needs.band_most) == (max(least, first), max(most, first - 1))


@given(enough_from=st.integers(3, 10**6), least=st.integers(1, 3))
def test_the_search_finds_the_first_that_is_enough_in_few_questions(enough_from, least):
    questions = []

    def enough(n: int) -> bool:
        questions.append(n)
        return n >= enough_from

    assert fewest(enough, least) == enough_from
    assert len(questions) <= 2 * enough_from.bit_length() + 2


def test_what_is_never_enough_is_told():
    with pytest.raises(ValueError, match="replicas are enough"):
        fewest(lambda n: False, 1)


# --- other ways to serve


@pytest.mark.parametrize("patience", [ExponentialPatience(20.0), FixedPatience(20.0)])
def test_clients_who_give_up_have_missed_the_objective(patience):
    queue = Impatient(10.0, patience).queue(9, arrival_rate=1.0)  # more than 9 can do
    at_rest = impatient_queue(9, 1.0, 10.0, patience)
    assert queue.more == {"fraction_lost": at_rest.fraction_lost}
    assert queue.wait_tail(1e6) == pytest.approx(at_rest.fraction_lost)
    # Of the served, as many wait longer than the quantile as it says.
    served_late = (queue.wait_tail(queue.wait_quantile(0.9)) - at_rest.fraction_lost) / (
        1 - at_rest.fraction_lost
    )
    assert served_late == pytest.approx(0.1, abs=0.002)


def test_impatience_needs_no_more_than_patience_does_and_survives_overload():
    # Nobody leaves before the wait that is still good, and those who leave later spare the others.
    patient, impatient = answer(asked()), answer(Question(1.0, Impatient(10.0, FixedPatience(6.0))))
    assert impatient.needs.wait <= patient.needs.wait
    few = answer(Question(1.0, Impatient(10.0, ExponentialPatience(5.0)), replicas_max=8)).recommended
    assert math.isfinite(few.wait_mean)
    assert few.more["fraction_lost"] > 0.2


def test_utilization_in_batches_is_the_share_of_what_full_batches_carry():
    service = Batches(BatchLine(0.010, 0.001), batch_max=16)
    queue = service.queue(4, arrival_rate=1500.0)
    assert service.capacity == pytest.approx(16 / 0.026)
    assert queue.utilization == pytest.approx(1500 * 0.026 / 16 / 4)
    at_rest = batches_at_once(4, 1500.0, BatchLine(0.010, 0.001), 16)
    assert queue.more["occupancy"] == at_rest.utilization > queue.utilization
    assert queue.wait_mean == at_rest.wait_mean


@pytest.mark.parametrize("share", [0.995, 1.0, 1.7])
def test_batches_at_their_capacity_wait_without_end(share):
    service = Batches(BatchLine(0.010, 0.001), batch_max=16)
    queue = service.queue(1, arrival_rate=share * service.capacity)
    assert math.isinf(queue.wait_mean)
    assert math.isinf(queue.wait_quantile(0.5))
    assert queue.utilization == pytest.approx(share)


def test_batching_needs_fewer_servers_than_one_by_one():
    alone = answer(Question(100.0, OneByOne(0.030, 0.1), WaitBound(0.1)))
    together = answer(Question(100.0, Batches(BatchLine(0.025, 0.005), 16), WaitBound(0.1)))
    assert together.recommended.replicas < alone.recommended.replicas


def test_continuous_batching_is_planned_in_replicas_with_their_slots():
    service = Continuous(StepLine(0.020, 0.001, tokens_out=200, prefill=0.1), slots_per_replica=33)
    found = answer(Question(40.0, service, WaitBound(2.0)))
    row = found.recommended
    assert (row.replicas, row.servers, found.binding) == (19, 627, Binding.BAND)
    queue = service.queue(17, 40.0)
    # Who waits, waits exponentially long.
    assert queue.wait_tail(queue.wait_quantile(0.99)) == pytest.approx(0.01)
    assert row.more["requests_mean"] == pytest.approx(33 * row.utilization)


# --- band and wait may exclude one another


def test_a_large_fleet_has_no_conflict():
    assert conflict_of(answer(asked(rate=10.0))) is None


def test_few_slots_cannot_keep_both_and_the_remedies_have_numbers():
    found = answer(asked(rate=0.3))
    conflict = conflict_of(found)
    assert conflict.wait_binds
    assert conflict.replicas == found.recommended.replicas == 7
    assert (found.needs.band_least, conflict.band_most) == (4, 5)
    assert conflict.band_wait == pytest.approx(found.row(5).wait_p99)
    assert conflict.fill == pytest.approx(0.60 * 7 - 3.0)
    pooled = answer(asked(rate=0.3 * conflict.pools))
    assert conflict_of(pooled) is None
    assert conflict.pooled_replicas == pooled.recommended.replicas < conflict.pools * 7
    assert conflict_of(answer(asked(rate=0.3 * (conflict.pools - 1)))) is not None


def test_no_whole_number_may_lie_in_the_band():
    found = answer(Question(0.1, OneByOne(10.0), WaitBound(60.0), Band(0.60, 0.75)))
    conflict = conflict_of(found)
    assert (found.recommended.replicas, conflict.wait_binds) == (2, False)
    assert conflict.band_wait is None
