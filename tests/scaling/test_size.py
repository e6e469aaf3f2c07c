"""From demand to servers."""

from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.domain import Binding, Objective
from autoscaler.queueing.erlang import erlang_c
from autoscaler.scaling.estimate import Estimate
from autoscaler.scaling.size import Need, RateLaw, need, replicas_for, servers_for_backlog

TEN_SECONDS = Estimate(arrival_rate=1.0, service_time_mean=10.0, service_scv=1.0, services=100.0)


def certain(rate: float) -> RateLaw:
    return RateLaw(rate, np.array([rate]), np.array([1.0]))


def test_ten_erlangs_ask_fourteen_to_sixteen_by_the_band():
    """DESIGN's example: 1/s of 10 s each, band 60-75 %: 10 / 0.75 = 13.3 and 10 / 0.60 = 16.7."""
    asked = need(certain(1.0), TEN_SECONDS, Objective(wait_seconds=60.0))
    assert (asked.band, asked.band_most) == (14, 16)
    assert asked.least <= asked.aim <= asked.most
    assert asked.binding is Binding.BAND


def test_without_an_upper_edge_the_wait_alone_decides():
    lean = Objective(utilization_high=1.0, wait_seconds=60.0)
    asked = need(certain(1.0), TEN_SECONDS, lean)
    assert asked.least == asked.aim == asked.most == asked.wait < 14
    assert asked.binding is Binding.WAIT
    patient = need(certain(1.0), TEN_SECONDS, Objective(utilization_high=1.0, wait_seconds=1e6))
    assert patient.aim == 11  # ten could not keep up


@given(st.floats(0.01, 5000.0))
def test_the_best_number_lies_between_the_least_and_the_most(rate):
    asked = need(certain(rate), TEN_SECONDS, Objective(wait_seconds=1e5))
    assert asked.least <= asked.aim <= asked.most
    assert asked.band >= 10.0 * rate / 0.75 - 1e-6


def test_a_small_fleet_does_not_flap_between_two_sizes():
    """Three erlangs on 5 servers: neither a twentieth more nor less moves it."""
    for rate in (0.285, 0.3, 0.315):
        asked = need(certain(rate), TEN_SECONDS, Objective(wait_seconds=1e5))
        assert asked.least <= 5 <= max(asked.most, asked.aim)


def test_a_wait_of_zero_asks_for_what_erlang_c_says():
    asked = need(certain(1.0), TEN_SECONDS, Objective(wait_seconds=0.0, wait_quantile=0.95))
    assert erlang_c(asked.wait, 10.0) <= 0.05 < erlang_c(asked.wait - 1, 10.0)
    assert asked.binding is Binding.WAIT


def test_an_uncertain_rate_asks_for_more_than_its_mean():
    wide = RateLaw(1.0, np.array([0.5, 1.0, 1.5]), np.array([0.25, 0.5, 0.25]))
    strict = Objective(wait_seconds=1.0, wait_quantile=0.99)
    assert need(wide, TEN_SECONDS, strict).wait > need(certain(1.0), TEN_SECONDS, strict).wait


@pytest.mark.parametrize("scv", [0.0, 0.01, 1.0, 10.0, 500.0])
def test_any_service_law_that_can_be_measured_is_sized_for(scv):
    measured = Estimate(arrival_rate=1.0, service_time_mean=10.0, service_scv=scv, services=100.0)
    assert need(certain(1.0), measured, Objective(wait_seconds=1.0)).wait >= 11


def test_a_backlog_is_work_once_and_not_demand():
    assert servers_for_backlog(0, 10.0, TEN_SECONDS, catch_up_time=60.0) == 0
    assert servers_for_backlog(60, 10.0, TEN_SECONDS, catch_up_time=60.0) == 20  # 10 + 60 x 10 s / 60 s
    assert servers_for_backlog(60, 10.0, TEN_SECONDS, catch_up_time=inf) == 10
    assert need(certain(1.0), TEN_SECONDS, Objective(), backlog_servers=40).binding is Binding.BACKLOG


def test_nothing_arrives_nothing_is_needed():
    assert need(certain(0.0), TEN_SECONDS, Objective()) == Need(0, 0, 0, 0)
    assert need(certain(0.0), TEN_SECONDS, Objective()).binding is Binding.NONE


def test_without_a_service_time_it_refuses():
    with pytest.raises(ValueError, match="service time"):
        need(certain(1.0), Estimate(), Objective())


def test_quantiles_are_nodes():
    law = RateLaw(2.0, np.array([3.0, 1.0, 2.0]), np.array([0.2, 0.3, 0.5]))
    assert [law.quantile(p) for p in (0.1, 0.3, 0.5, 0.8, 0.9, 1.0)] == [1.0, 1.0, 2.0, 2.0, 3.0, 3.0]


@given(servers=st.integers(0, 10_000), slots=st.integers(1, 64))
def test_replicas_hold_the_servers_and_not_one_replica_more(servers, slots):
    replicas = replicas_for(servers, slots)
    assert replicas * slots >= servers > (replicas - 1) * slots or servers == replicas == 0


@given(rate=st.floats(0.01, 50.0), more=st.floats(1.0, 3.0))
def test_more_demand_never_asks_for_fewer_servers(rate, more):
    less, greater = (need(certain(r), TEN_SECONDS, Objective()) for r in (rate, rate * more))
    assert greater.wait >= less.wait
    assert greater.band >= less.band
    assert greater.band_most >= less.band_most
