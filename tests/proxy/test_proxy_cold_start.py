"""Before the first replica is there: who can wait is held, who cannot is told at once and when."""

import asyncio

import pytest

from autoscaler.clock import SystemClock
from autoscaler.dispatch import QueueOptions
from autoscaler.domain import DropReason, Fleet
from autoscaler.proxy.expectation import Expectation
from tests.fakes.front import front
from tests.fakes.upstream import Upstream

CLOCK = SystemClock()
PATIENT = QueueOptions(clock_stops_max=300.0)


async def test_f11_with_a_start_of_150_s_a_budget_of_30_s_is_refused_early_and_one_of_300_s_is_held():
    async with Upstream() as model, front(queue=PATIENT) as proxy:
        proxy.drive.replica_expected(CLOCK.now() + 150.0)
        hasty = await proxy.ask("/v1/x", b"{}", "X-Request-Timeout-Ms: 30000")
        assert (hasty.status, hasty.json["error"]["code"]) == (503, "no_replica_in_time")
        assert 145 <= int(hasty.head.get("Retry-After") or 0) <= 150
        assert hasty.head.get("X-Request-Executed") == "no"
        patient = asyncio.create_task(proxy.ask("/v1/x", b"{}", "X-Request-Timeout-Ms: 300000"))
        await proxy.until(waiting=1)
        proxy.drive.replica_ready(model.replica())
        assert (await patient).status == 200
        assert proxy.facts.reasons == {DropReason.NO_REPLICA_IN_TIME: 1}


async def test_f11_who_came_before_the_start_was_ordered_is_told_when_it_is():
    async with front(queue=PATIENT) as proxy:
        first = asyncio.create_task(proxy.ask("/x", b"{}", "X-Request-Timeout-Ms: 30000"))
        await proxy.until(waiting=1)
        proxy.drive.replica_expected(CLOCK.now() + 150.0)
        assert (await first).status == 503


class Told:
    """A drive that only remembers."""

    def __init__(self) -> None:
        self.at: float | None = None

    def replica_expected(self, at: float | None) -> None:
        self.at = at


def a_fleet(ready: int = 0, starting: int = 0, draining: int = 0, cold_start: float = 150.0) -> Fleet:
    return Fleet(ready, starting, draining, 1, cold_start, cold_start)


@pytest.mark.parametrize(
    "steps, at",
    [
        ([(a_fleet(), 0, 100.0)], 260.0),  # asleep: one interval to be woken, and a start
        ([(a_fleet(), 1, 100.0)], 250.0),  # just ordered
        ([(a_fleet(), 1, 100.0), (a_fleet(starting=1), 1, 110.0)], 250.0),  # on its way
        ([(a_fleet(), 1, 100.0), (a_fleet(starting=1), 2, 251.0)], None),  # late: nobody knows
        ([(a_fleet(starting=1), 1, 100.0), (a_fleet(ready=1), 1, 110.0)], None),
        ([(a_fleet(ready=1, starting=3), 4, 100.0)], None),
        ([(a_fleet(draining=1), 0, 100.0)], None),  # can be had back at once
        ([(a_fleet(), 1, 100.0), (a_fleet(), 0, 110.0), (a_fleet(), 1, 120.0)], 270.0),  # given up, and again
    ],
)
def test_what_is_expected_follows_from_the_fleet_and_what_is_wanted_of_it(steps, at):
    told = Told()
    expectation = Expectation(told, delay=10.0)
    for fleet, desired, now in steps:
        expectation.follow(fleet, desired, now)
    assert told.at == at
