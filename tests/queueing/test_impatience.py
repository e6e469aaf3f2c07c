import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autoscaler.queueing import waiting
from autoscaler.queueing.impatience import (
    ExponentialPatience,
    FixedPatience,
    impatient_queue,
    served_wait_tail,
)


def erlang_a_by_chain(servers, arrival_rate, service_time_mean, patience_mean):
    """The birth-and-death chain itself: P(wait), fraction lost, mean wait; Palm's Erlang A."""
    too_many = max(arrival_rate - servers / service_time_mean, 0.0) * patience_mean
    n = np.arange(1, servers + 4000 + int(2 * too_many))
    leaving = np.minimum(n, servers) / service_time_mean + np.maximum(n - servers, 0) / patience_mean
    weight = np.concatenate([[0.0], np.cumsum(np.log(arrival_rate / leaving))])
    law = np.exp(weight - weight.max())
    law /= law.sum()
    queue = float(law[servers:] @ np.arange(len(law) - servers))
    return law[servers:].sum(), queue / patience_mean / arrival_rate, queue / arrival_rate


@settings(max_examples=40)
@given(st.integers(1, 200), st.floats(0.1, 3.0), st.floats(0.05, 50.0))
def test_erlang_a_is_its_chain(servers, load_per_server, patience_mean):
    queue = impatient_queue(servers, servers * load_per_server, 1.0, ExponentialPatience(patience_mean))
    expected = erlang_a_by_chain(servers, servers * load_per_server, 1.0, patience_mean)
    seen = queue.probability_of_wait, queue.fraction_lost, queue.wait_mean
    assert seen == pytest.approx(expected, rel=1e-9, abs=1e-300)


@pytest.mark.parametrize("utilization", [0.5, 0.8, 1.0, 1.3])
def test_one_server_with_a_deadline(utilization):
    """M/M/1+D in closed form: the density of the wait is lambda exp((lambda - mu) v) up to the deadline."""
    deadline, k = 2.0, utilization - 1.0
    before = deadline if k == 0 else math.expm1(k * deadline) / k
    beyond = math.exp(k * deadline)
    total = 1 + utilization * (before + beyond)
    queue = impatient_queue(1, utilization, 1.0, FixedPatience(deadline))
    assert queue.fraction_lost == pytest.approx(utilization * beyond / total)
    assert queue.probability_of_wait == pytest.approx(1 - 1 / total)


@pytest.mark.parametrize("patience", [ExponentialPatience(1e7), FixedPatience(1e4)])
def test_endless_patience_is_erlang_c(patience):
    queue = impatient_queue(10, 0.8, 10.0, patience)
    assert queue.probability_of_wait == pytest.approx(waiting.probability_of_wait(10, 0.8, 10.0), rel=1e-4)
    assert queue.wait_mean_served == pytest.approx(waiting.wait_mean(10, 0.8, 10.0), rel=1e-4)
    assert served_wait_tail(10, 0.8, 10.0, patience, 20.0) == pytest.approx(
        waiting.wait_tail(10, 0.8, 10.0, 20.0), rel=1e-3
    )


@pytest.mark.parametrize("patience", [ExponentialPatience(3.0), FixedPatience(3.0)])
@pytest.mark.parametrize("arrival_rate", [0.9, 5.0])
def test_the_mean_wait_of_the_served_is_the_integral_of_their_tail(patience, arrival_rate):
    t = np.linspace(0, 15, 151)
    tail = [served_wait_tail(8, arrival_rate, 10.0, patience, s) for s in t]
    queue = impatient_queue(8, arrival_rate, 10.0, patience)
    assert np.trapezoid(tail, t) == pytest.approx(queue.wait_mean_served, rel=1e-2)


def test_nobody_is_served_after_the_deadline():
    assert served_wait_tail(10, 1.3, 10.0, FixedPatience(5.0), 4.9) > 0
    assert served_wait_tail(10, 1.3, 10.0, FixedPatience(5.0), 5.0) == 0.0


# Far above capacity just so many leave that the rest can be served.
@pytest.mark.parametrize("patience", [ExponentialPatience(5.0), FixedPatience(5.0)])
def test_in_overload_what_is_too_much_leaves(patience):
    queue = impatient_queue(10_000, 1500.0, 10.0, patience)
    assert queue.fraction_lost == pytest.approx(1 - 1000.0 / 1500.0, rel=1e-3)
    assert queue.utilization == pytest.approx(1.0, abs=1e-6)


@settings(max_examples=30)
@given(st.integers(1, 100), st.floats(0.1, 3.0), st.floats(0.1, 20.0))
def test_another_server_loses_fewer(servers, load_per_server, patience_mean):
    for patience in (ExponentialPatience(patience_mean), FixedPatience(patience_mean)):
        here, further = (
            impatient_queue(c, servers * load_per_server, 1.0, patience) for c in (servers, servers + 1)
        )
        assert further.fraction_lost <= here.fraction_lost


@pytest.mark.parametrize("arguments", [(0, 1.0, 1.0), (1, 0.0, 1.0), (1, 1.0, 0.0)])
def test_what_has_no_meaning_is_refused(arguments):
    with pytest.raises(ValueError, match="need"):
        impatient_queue(*arguments, FixedPatience(1.0))
    with pytest.raises(ValueError, match="patience > 0"):
        impatient_queue(1, 1.0, 1.0, FixedPatience(0.0))
