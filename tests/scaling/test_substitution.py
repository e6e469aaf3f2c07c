"""What a second pool is to serve because the first one's orders do not come: how much, when, how long."""

from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import isnan, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.domain import Binding, Fleet, Hold, Numbers, Objective, Observation, Reason
from autoscaler.scaling import Controller, DecisionPolicy
from autoscaler.scaling.merge import side_by_side
from autoscaler.scaling.substitution import Substitution
from tests.scaling.plant import Plant


def a_fleet(ready=2, starting=0, asked=2):
    return Fleet(ready, starting, 0, 1, 60.0, 60.0, asked=asked)


def a_decision(needed=6, late=0, reason=Reason.SUPPLY_LATE, likely=nan, rate=3.0):
    numbers = Numbers(
        replicas_wanted=needed, replicas_late=late, supply_probability=likely, arrival_rate=rate
    )
    return Hold(needed, reason, Binding.SUPPLY, numbers)


def seen(arrivals=30, queue=0, oldest=0.0):
    return Observation(10.0, arrivals, 0, 0.0, 0.0, 0.0, queue, queue, oldest, 1e6)


def a_short_pool(needed=6, ready=2):
    substitution = Substitution()
    fleet = a_fleet(ready, needed - ready, needed)
    substitution.decided(a_decision(needed, late=needed - ready), fleet, now=100.0)
    return substitution


# -- when it is short, and how much of its demand goes over


def test_the_share_is_what_ready_replicas_cannot_serve():
    substitution = a_short_pool(needed=6, ready=2)
    assert substitution.is_short
    assert substitution.share == pytest.approx(4 / 6)
    assert substitution.arrival_rate == pytest.approx(2.0)


def test_a_burst_whose_orders_may_still_come_in_time_makes_nobody_short():
    substitution = Substitution()
    substitution.decided(a_decision(20, reason=Reason.DEMAND_RISES), a_fleet(2, 18, 20), now=100.0)
    assert (substitution.is_short, substitution.share) == (False, 0.0)


def test_one_late_order_beside_others_in_time_makes_a_pool_short_by_that_one():
    substitution = Substitution()
    substitution.decided(a_decision(6, late=1), a_fleet(2, 4, 6), now=100.0)
    assert substitution.is_short
    assert substitution.share == pytest.approx(4 / 6)  # nothing that starts is counted on before one comes


def test_a_late_order_that_is_not_needed_any_more_makes_nobody_short():
    substitution = Substitution()
    substitution.decided(a_decision(2, late=4, reason=Reason.CALLED_OFF), a_fleet(2, 4, 6), now=100.0)
    assert not substitution.is_short


def test_between_two_probes_nothing_is_late_and_nothing_has_changed():
    substitution = a_short_pool(needed=1, ready=0)
    young_probe = a_decision(1, reason=Reason.DEMAND_RISES)
    substitution.decided(young_probe, a_fleet(0, 1, 1), now=200.0)
    assert (substitution.is_short, substitution.share) == (True, 1.0)


def test_an_idle_pool_stays_short_but_nothing_of_it_goes_over():
    substitution = a_short_pool(needed=1, ready=0)
    substitution.decided(a_decision(0, reason=Reason.IDLE), a_fleet(0, 0, 0), now=200.0)
    assert (substitution.is_short, substitution.share, substitution.arrival_rate) == (True, 0.0, 0.0)


def test_once_as_much_is_ready_as_is_needed_the_shortage_is_over():
    substitution = a_short_pool(needed=6, ready=2)
    substitution.decided(a_decision(6, reason=Reason.WITHIN_BAND), a_fleet(6, 0, 6), now=200.0)
    assert (substitution.is_short, substitution.share) == (False, 0.0)


def test_what_starts_counts_again_when_orders_are_likely_to_come():
    substitution = a_short_pool(needed=6, ready=2)
    coming = a_fleet(3, 3, 6)
    substitution.decided(a_decision(6, reason=Reason.DEMAND_RISES, likely=0.5), coming, now=200.0)
    assert substitution.share == pytest.approx(0.5)
    substitution.decided(a_decision(6, reason=Reason.DEMAND_RISES, likely=0.8), coming, now=210.0)
    assert (substitution.is_short, substitution.share) == (True, 0.0)


def test_a_shortage_without_a_sign_is_forgotten_after_half_an_hour():
    substitution = a_short_pool(needed=1, ready=0)
    idle = a_decision(0, reason=Reason.IDLE)
    substitution.decided(idle, a_fleet(0, 0, 0), now=1899.0)
    assert substitution.is_short
    substitution.decided(idle, a_fleet(0, 0, 0), now=1900.0)
    assert not substitution.is_short


def test_where_nobody_carries_decisions_out_nothing_is_learned():
    substitution = Substitution()
    substitution.decided(a_decision(6, late=4), replace(a_fleet(2, 4), asked=None), now=100.0)
    assert not substitution.is_short


# -- what of it the second pool is shown


def shown(substitution, *, with_services=False):
    return substitution.demand(10.0, 2e6, with_services=with_services)


def test_the_second_pool_is_shown_the_share_of_those_who_come_and_of_those_who_wait():
    substitution = a_short_pool(needed=6, ready=2)
    substitution.observed(seen(arrivals=30, queue=9, oldest=7.0))
    demand = shown(substitution)
    assert (demand.arrivals, demand.queue_depth, demand.in_flight) == (20, 6, 6)
    assert (demand.oldest_wait, demand.completions, demand.busy_slots_mean) == (7.0, 0, 0.0)
    assert (demand.interval, demand.wall_time) == (10.0, 2e6)


def test_parts_of_requests_add_up_instead_of_being_rounded_away():
    substitution = a_short_pool(needed=10, ready=9)
    arrivals = 0
    for _ in range(100):
        substitution.observed(seen(arrivals=3))
        arrivals += shown(substitution).arrivals
    assert arrivals == pytest.approx(30, abs=1)


def test_an_interval_is_shown_once_and_one_that_nobody_asked_for_is_not_made_up_for():
    substitution = a_short_pool(needed=6, ready=2)
    substitution.observed(seen(arrivals=30))
    substitution.observed(seen(arrivals=30))
    assert [shown(substitution).arrivals for _ in "ab"] == [20, 0]


def test_service_times_are_lent_to_who_has_none():
    substitution = a_short_pool(needed=6, ready=2)
    substitution.observed(replace(seen(), completions=3, service_time_sum=6.0, service_time_square_sum=14.0))
    assert shown(substitution).completions == 0
    lent = shown(substitution, with_services=True)
    assert (lent.completions, lent.service_time_sum, lent.service_time_square_sum) == (3, 6.0, 14.0)


def test_without_a_shortage_nothing_is_shown():
    substitution = Substitution()
    substitution.observed(seen(queue=5))
    assert shown(substitution) is None


def test_when_the_shortage_is_over_nothing_of_it_is_left():
    substitution = a_short_pool(needed=6, ready=2)
    substitution.observed(seen(arrivals=30, queue=5))
    substitution.decided(a_decision(6, reason=Reason.WITHIN_BAND), a_fleet(6, 0, 6), now=200.0)
    assert shown(substitution) is None


@given(
    needed=st.integers(0, 50), ready=st.integers(0, 50), starting=st.integers(0, 50), late=st.integers(0, 50)
)
def test_the_share_is_one_and_never_more_than_what_lacks(needed, ready, starting, late):
    substitution = Substitution()
    fleet = a_fleet(ready, starting, ready + starting)
    substitution.decided(a_decision(needed, late=min(late, starting)), fleet, now=1.0)
    assert 0.0 <= substitution.share <= 1.0
    assert substitution.share * needed <= max(0, needed - ready) + 1e-9


# -- two pools


@dataclass
class Second(Plant):
    """The pool that stands in for `first`: it takes who waits there, as far as it has room."""

    first: Plant | None = None
    substitution: Substitution = field(default_factory=Substitution)
    taken: float = 0.0
    shares: list[float] = field(default_factory=list)
    first_queues: list[float] = field(default_factory=list)

    def _serve(self, rate):
        room = max(0.0, self.replicas * self.slots * self.interval / self.service - rate * self.interval)
        over = min(self.first.queue, room) if self.substitution.is_short else 0.0
        self.first.queue -= over
        self.taken = over
        own = super()._serve(rate + over / self.interval)
        own = replace(own, arrivals=round(rate * self.interval))
        unknown = not self.decisions or isnan(self.decisions[-1].numbers.service_time_mean)
        share = self.substitution.demand(self.interval, own.wall_time, with_services=unknown)
        return own if share is None else side_by_side([own, share], self.interval, own.wall_time)


@dataclass
class First(Plant):
    """The pool that may be short; what is with the second one counts as in flight here."""

    second: Second | None = None

    def _serve(self, rate):
        self.seen = super()._serve(rate)
        with_second = self.second.taken * self.second.service / self.interval
        self.seen = replace(self.seen, in_flight=self.seen.in_flight + round(with_second))
        return self.seen

    def _obey(self, desired):
        second, asked = self.second, self.asked
        fleet = Fleet(
            self.replicas, len(self.starting) + self.pending, 0, 1, self.start, self.start, asked=asked
        )
        second.substitution.decided(self.decisions[-1], fleet, self.now)
        second.substitution.observed(self.seen)
        second.shares.append(second.substitution.share)
        second.first_queues.append(self.queue)
        super()._obey(desired)


def two_pools(supply=10_000, ready=1):
    """The platform of the first does not show what is not to be had; `supply` is what is."""
    objective = Objective(wait_seconds=30.0, wait_quantile=0.95)
    first = First(Controller(objective, DecisionPolicy(replicas_min=ready)), ready, supply=supply, hides=True)
    second = Second(Controller(objective, DecisionPolicy(replicas_min=0)), replicas=0, first=first)
    first.second = second
    return first, second


def run(first, second, duration, rate, own=0.0):
    """Let both go on together; the first decides first."""
    for _ in range(round(duration / first.interval)):
        first.run(first.interval, rate)
        second.run(second.interval, own)


def test_the_second_pool_serves_what_the_first_cannot_and_lets_go_when_it_can_again():
    first, second = two_pools(supply=2)
    run(first, second, 1200.0, 0.1)
    assert set(second.sizes) == {0}
    run(first, second, 2400.0, 0.45)  # 4.5 erlangs: six replicas
    needed = first.decisions[-1].numbers.replicas_wanted
    assert (first.replicas, needed) == (2, 6)
    assert second.replicas >= 4
    assert max(second.first_queues[-120:]) <= 3.0  # what comes within an interval
    lately = [one + other for one, other in zip(first.sizes[-120:], second.sizes[-120:], strict=True)]
    assert max(lately) <= needed + 2  # a probe, and whole replicas in two pools
    assert max(second.sizes[-120:]) - min(second.sizes[-120:]) <= 1

    first.supply = 10_000
    run(first, second, 2400.0, 0.45)
    assert first.replicas >= 6
    assert (second.sizes[-1], second.shares[-1]) == (0, 0.0)
    assert first.queue <= 1.0
    assert all(other <= one for one, other in pairwise(second.sizes[-240:]))  # it only shrinks


def test_a_first_pool_that_never_comes_is_served_by_the_second_and_probed_all_the_while():
    first, second = two_pools(supply=0, ready=0)
    run(first, second, 7200.0, 0.3)
    assert first.replicas == 0
    assert second.replicas >= 4
    assert set(second.shares[-360:]) == {1.0}
    assert {*first.sizes[-360:]} == {0, 1}
    assert max(second.sizes[-360:]) - min(second.sizes[-360:]) <= 1
    assert max(second.first_queues[-360:]) <= 3.0


def test_when_load_ends_nothing_stays_ordered_in_either():
    first, second = two_pools(supply=2)
    run(first, second, 3600.0, 0.45)
    assert second.replicas > 0
    run(first, second, 2400.0, 0.0)
    assert (first.sizes[-1], second.sizes[-1]) == (1, 0)


def test_a_burst_with_supply_leaves_the_second_pool_alone():
    first, second = two_pools()
    run(first, second, 1200.0, 0.1)
    run(first, second, 1200.0, 1.0)
    assert first.replicas >= 10
    assert (set(second.sizes), set(second.shares)) == ({0}, {0.0})


def test_the_second_pool_keeps_what_its_own_load_needs():
    first, second = two_pools(supply=2)
    run(first, second, 1200.0, 0.1, own=0.2)
    alone = second.sizes[-1]
    run(first, second, 3600.0, 0.45, own=0.2)
    assert second.sizes[-1] >= alone + 3
    first.supply = 10_000
    run(first, second, 3600.0, 0.45, own=0.2)
    assert abs(second.sizes[-1] - alone) <= 1
