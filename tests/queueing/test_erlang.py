import csv
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.queueing.erlang import erlang_b, erlang_c, log_erlang_c, log_erlang_c_and_with_one_fewer
from autoscaler.queueing.erlang_inverse import offered_load_for_blocking, servers_for_blocking

TABLES = Path(__file__).parents[1] / "tables"


def table(name):
    with (TABLES / name).open() as file:
        assert next(file).startswith("# ")  # where the values come from
        return [tuple(float(value) for value in row.values()) for row in csv.DictReader(file)]


def exact_erlang_b(servers, offered_load):
    load, blocking = Fraction(offered_load), Fraction(1)
    for c in range(1, servers + 1):
        blocking = load * blocking / (c + load * blocking)
    return blocking


def relative_error(value, exact):
    return abs(Fraction(value) / exact - 1)


@pytest.mark.parametrize("servers, blocking, offered_load", table("erlang_b_offered_load.csv"))
def test_erlang_b_agrees_with_the_published_table(servers, blocking, offered_load):
    # The last figure is rounded, in a few rows the wrong way.
    last_figure = max(10.0 ** (math.floor(math.log10(offered_load)) - 2), 0.001)
    assert offered_load_for_blocking(servers, blocking) == pytest.approx(offered_load, abs=1.02 * last_figure)


@pytest.mark.parametrize("servers, offered_load, blocking, delay", table("erlang_exact.csv"))
def test_erlang_agrees_with_the_exact_table(servers, offered_load, blocking, delay):
    # The table was made for the load as printed; the nearest double moves B by up to c ulps.
    tolerance = 1e-12 + 3e-16 * servers
    if blocking > 1e-300:
        assert erlang_b(servers, offered_load) == pytest.approx(blocking, rel=tolerance)
        assert erlang_c(servers, offered_load) == pytest.approx(delay, rel=tolerance)


@given(servers=st.integers(0, 300), load_per_server=st.floats(0.001, 1000))
def test_erlang_b_is_exact_to_ten_figures_up_to_300_servers(servers, load_per_server):
    offered_load = load_per_server * max(servers, 1)
    exact = exact_erlang_b(servers, offered_load)
    if exact > 1e-300:
        assert relative_error(erlang_b(servers, offered_load), exact) < 1e-12


@given(servers=st.integers(1, 300), utilization=st.floats(0.001, 0.999999))
def test_erlang_c_is_exact_to_ten_figures_up_to_300_servers(servers, utilization):
    load = servers * utilization
    blocking = exact_erlang_b(servers, load)
    exact = servers * blocking / (servers - Fraction(load) * (1 - blocking))
    if exact > 1e-300:
        assert relative_error(erlang_c(servers, load), exact) < 1e-12


def blocking_by_series(servers, offered_load):
    """1/B as a sum of positive terms, largest first: exact to rounding, for whole servers."""
    terms = np.cumprod((servers - np.arange(servers)) / offered_load)
    return 1.0 / (1.0 + math.fsum(terms))


@pytest.mark.parametrize("servers", [10_000, 1_000_000])
@pytest.mark.parametrize("spare", [-200.0, -20.0, -6.5, -5.5, -1.0, 0.0, 1.0, 3.0, 8.0, 20.0])
def test_a_million_servers_are_as_exact(servers, spare):
    offered_load = servers - spare * math.sqrt(servers)
    expected = blocking_by_series(servers, offered_load)
    assert erlang_b(servers, offered_load) == pytest.approx(expected, rel=1e-10)


def test_erlang_c_of_the_example_of_the_design():
    waits = erlang_c(np.array([12, 13, 14, 15, 16]), 10.0)
    assert np.round(waits, 3).tolist() == [0.449, 0.285, 0.174, 0.102, 0.057]


@pytest.mark.parametrize("offered_load", [0.1, 0.5, 0.999])
def test_one_server(offered_load):
    assert erlang_b(1, offered_load) == pytest.approx(offered_load / (1 + offered_load), rel=1e-14)
    assert erlang_c(1, offered_load) == pytest.approx(offered_load, rel=1e-14)


def test_no_servers_lose_everything_and_no_load_loses_nothing():
    assert erlang_b(0, 3.0) == 1.0
    assert erlang_b(0, 1e6) == 1.0
    assert erlang_b(3, 0.0) == 0.0
    assert erlang_c(3, 0.0) == 0.0


@pytest.mark.parametrize("offered_load", [3.0, 3.1, 1e6])
def test_at_and_above_capacity_everyone_waits(offered_load):
    assert erlang_c(3, offered_load) == 1.0


@given(servers=st.floats(0, 1e6), offered_load=st.floats(0, 1e6))
def test_blocking_is_a_probability_and_another_server_never_raises_it(servers, offered_load):
    here, further = erlang_b(servers, offered_load), erlang_b(servers + 1, offered_load)
    assert 0 <= further <= here <= 1


@given(servers=st.floats(0, 1e5), offered_load=st.floats(1e-3, 1e5))
def test_the_recursion_holds_between_whole_numbers_of_servers(servers, offered_load):
    blocking = erlang_b(servers, offered_load)
    if blocking > 1e-290:
        expected = offered_load * blocking / (servers + 1 + offered_load * blocking)
        assert erlang_b(servers + 1, offered_load) == pytest.approx(expected, rel=1e-10)


@given(servers=st.floats(0.01, 1e6), blocking=st.floats(1e-9, 0.99))
def test_the_load_for_a_blocking_gives_that_blocking(servers, blocking):
    load = offered_load_for_blocking(servers, blocking)
    if load > 1e-290:
        assert erlang_b(servers, load) == pytest.approx(blocking, rel=1e-6)


@given(offered_load=st.floats(1e-3, 1e6), blocking=st.floats(1e-9, 0.99))
def test_the_servers_for_a_blocking_give_that_blocking(offered_load, blocking):
    servers = servers_for_blocking(offered_load, blocking)
    assert erlang_b(servers, offered_load) == pytest.approx(blocking, rel=1e-6)


def test_arrays_broadcast_and_numbers_stay_numbers():
    servers, load = np.array([[1], [10]]), np.array([0.5, 5.0, 50.0])
    table = erlang_b(servers, load)
    assert table.shape == (2, 3)
    assert table[1, 1] == pytest.approx(erlang_b(10, 5.0), rel=1e-13)
    assert isinstance(erlang_b(10, 5.0), float)


@given(servers=st.floats(0, 1e6), offered_load=st.floats(0, 1e6))
def test_a_number_is_answered_as_an_array_of_it(servers, offered_load):
    for formula in (erlang_b, erlang_c):
        alone = formula(servers, offered_load)
        (among,) = formula(np.array([servers]), np.array([offered_load]))
        assert alone == pytest.approx(among, rel=1e-11, abs=1e-300)


@given(servers=st.integers(1, 10**6), share=st.floats(1e-3, 3.0))
def test_one_server_fewer_is_told_as_if_asked_for_itself(servers, share):
    c, a = float(servers), share * servers
    for one, few in ((c, a), (np.array([c]), np.array([a]))):
        here, fewer = log_erlang_c_and_with_one_fewer(one, few)
        assert here == pytest.approx(log_erlang_c(one, few), abs=1e-10, rel=1e-10)
        assert fewer == pytest.approx(log_erlang_c(one - 1.0, few), abs=1e-10, rel=1e-10)


@pytest.mark.parametrize("servers, offered_load", [(-1, 1.0), (1, -1.0), (1, math.nan), (math.inf, 1.0)])
def test_what_has_no_meaning_is_refused(servers, offered_load):
    with pytest.raises(ValueError, match="need finite servers, offered_load >= 0"):
        erlang_b(servers, offered_load)
    with pytest.raises(ValueError, match="need finite servers, offered_load >= 0"):
        erlang_c(servers, offered_load)
