"""Theory meets the wire, briefly: the proxy is a queue, first come first served, before c servers.

`python -m load law` does it at length, with the formulas for the mean. Here the arrivals and services that
really happened are what the recursion is fed with, so that a slow machine changes both sides alike.
"""

import asyncio
from collections.abc import Callable

import numpy as np
import pytest
import uvloop

from autoscaler.dispatch import QueueOptions
from autoscaler.ports import Replica
from autoscaler.proxy.options import RouteOptions
from load.arrivals import poisson
from load.bench.queue_simulation import gamma_law, lognormal_law
from load.law.judge import Case, judge
from load.law.recursion import Fit, fit_overhead, waits_of
from load.law.run import drawn_evenly
from load.law.wire import Clients, ModelServer, Seen
from tests.fakes.front import front

SLOTS, SERVICE, UTILIZATION = 4, 0.020, 0.8
RUN = 3.0  # [s]
TRIES = 5


def test_the_recursion_serves_first_who_came_first_and_uses_every_server():
    arrivals, services = np.array([0.0, 0.0, 1.0, 1.5]), np.array([3.0, 5.0, 1.0, 1.0])
    assert waits_of(arrivals, services, servers=2).tolist() == [0.0, 0.0, 2.0, 2.5]
    assert waits_of(arrivals, services, servers=2, overhead=0.5).tolist() == [0.0, 0.0, 2.5, 3.5]
    assert waits_of(arrivals, services, servers=4).tolist() == [0.0] * 4


def test_the_overhead_that_was_put_in_is_found_again():
    rng = np.random.default_rng(1)
    arrivals = poisson(40.0, 20.0, rng)
    services = rng.exponential(0.08, arrivals.size)
    begins = arrivals + 0.0004 + waits_of(arrivals, services, 4, overhead=0.0015)
    fit = fit_overhead(arrivals, begins, services, 4)
    assert fit.overhead == pytest.approx(0.0015, abs=2e-5)
    assert fit.transit == pytest.approx(0.0004, abs=2e-5)


def a_queue(servers: int, overhead: float) -> Seen:
    """What would be seen of a queue with so many servers, before which the proxy claims to have four."""
    rng = np.random.default_rng(2)
    arrivals = poisson(0.6 * SLOTS / SERVICE, 200.0, rng)
    services = rng.exponential(SERVICE, arrivals.size)
    begun = arrivals + 0.0004 + waits_of(arrivals, services, servers, overhead)
    return Seen(arrivals, begun, begun + services)


@pytest.mark.parametrize(
    "servers, overhead, holds",
    [
        (4, 0.0005, True),
        (3, 0.0, False),
        (4, 0.004, False),
        (5, 0.0, False),
    ],
    ids=["as claimed", "a slot is lost", "slots idle for 4 ms", "a slot too many"],
)
def test_the_judge_knows_the_queue_that_it_was_told_of_from_others(servers, overhead, holds):
    seen = a_queue(servers, overhead)
    case = Case("M/M/c", 1.0, SLOTS, SERVICE, 0.6)
    verdict = judge(case, seen, seen.ended - seen.begun, np.random.default_rng(3))
    assert (verdict.law_holds, verdict.path_holds) == (holds, holds)


def test_times_that_are_drawn_evenly_have_the_moments_of_their_law_and_come_in_any_order():
    times = drawn_evenly(lognormal_law(SERVICE, 4.0), 5000, np.random.default_rng(4))
    assert times.size == 5000
    assert np.mean(times) == pytest.approx(SERVICE, rel=0.01)
    assert np.var(times) / np.mean(times) ** 2 == pytest.approx(4.0, rel=0.2)
    assert abs(np.corrcoef(times[1:], times[:-1])[0, 1]) < 0.05


async def measure(law: Callable[..., np.ndarray], seed: int) -> tuple[Seen, Fit]:
    rng = np.random.default_rng(seed)
    arrivals = poisson(UTILIZATION * SLOTS / SERVICE, RUN, rng)
    seen = Seen.nothing(arrivals.size)
    server = await asyncio.get_running_loop().create_server(lambda: ModelServer(lambda: seen), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        async with front(
            Replica("r", f"http://127.0.0.1:{port}", SLOTS),
            route=RouteOptions(wait_timeout=60.0),
            queue=QueueOptions(requests_max=10_000),
        ) as proxy:
            await Clients(proxy.port, seen).run(arrivals, law(rng, (1, arrivals.size))[0])
    finally:
        server.close()
    ordered = seen.in_order_of_arrival()
    return ordered, fit_overhead(ordered.sent, ordered.begun, ordered.ended - ordered.begun, SLOTS)


@pytest.mark.parametrize(
    "law",
    [gamma_law(SERVICE, 1.0), gamma_law(SERVICE, 0.0), lognormal_law(SERVICE, 4.0)],
    ids=["M/M/c", "M/D/c", "M/G/c"],
)
def test_the_waits_are_those_of_a_queue_with_so_many_servers(law):
    """What else runs on the machine can only make it worse, so the best of a few runs counts."""
    for seed in range(TRIES):
        seen, fit = uvloop.run(measure(law, seed))
        assert seen.statuses == {200: seen.sent.size}
        waited, waits = float(np.mean(fit.differences + fit.waits)), float(np.mean(fit.waits))
        off = float(np.median(np.abs(fit.differences)))
        if fit.overhead <= 0.002 and abs(waited - waits) <= 0.1 * waits + 0.0005 and off <= 0.002:
            break
    else:
        pytest.fail(
            f"overhead {fit.overhead:.5f} s, mean wait {waited:.4f} s for {waits:.4f} s, off {off:.5f} s"
        )
    at_work = np.concatenate([seen.begun, seen.ended])
    change = np.concatenate([np.ones(seen.begun.size), -np.ones(seen.ended.size)])
    assert np.max(np.cumsum(change[np.argsort(at_work)])) <= SLOTS, "more at work than there are slots"
    assert waits > 0.001, "nobody waited: nothing was tested"
