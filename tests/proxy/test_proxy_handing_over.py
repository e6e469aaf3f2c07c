"""A pool that stands in for another: who waits there is served here, each with one lease, given back once."""

import asyncio
import random

import pytest

from autoscaler.clock import SystemClock
from autoscaler.dispatch import Dispatcher, QueueOptions
from autoscaler.domain import DropReason, Outcome, Request
from autoscaler.ports import Replica
from autoscaler.proxy.drive import PoolDrive
from autoscaler.proxy.grant import Dropped, Grant
from tests.fakes.front import Facts

CLOCK = SystemClock()
_ids = iter(range(10**9))


def a_replica(replica_id, slots=1):
    return Replica(replica_id, f"http://{replica_id}", slots)


def a_request(timeout=60.0):
    now = CLOCK.now()
    return Request(f"q{next(_ids)}", now, now + timeout)


class Pools:
    """Two pools; `spare` stands in for `short`, once that is told to give away."""

    def __init__(self, short=0, spare=0, **queue):
        self.facts = Facts()  # of both: each fact is told once, by one of them
        self.short, self.spare = (
            PoolDrive(name, Dispatcher(QueueOptions(**queue)), CLOCK, [self.facts])
            for name in ("short", "spare")
        )
        self.short.substitute_by(self.spare)
        if short:
            self.short.replica_ready(a_replica("s", short))
        if spare:
            self.spare.replica_ready(a_replica("p", spare))

    def ask(self, of=None, timeout=60.0):
        return asyncio.create_task((of or self.short).acquire(a_request(timeout)))

    async def granted(self, of=None):
        grant = await (of or self.short).acquire(a_request())
        assert isinstance(grant, Grant)
        return grant

    def release(self, grant, outcome=Outcome.COMPLETED):
        (self.short if grant.pool == "short" else self.spare).release(grant, outcome)

    def check_nothing_is_left(self):
        for drive in (self.short, self.spare):
            assert drive.idle
            assert drive.reconcile() == 0
            assert drive.snapshot().slots_leaked == 0
        assert self.spare.in_flight_for("short") == 0
        self.facts.check_all_has_ended()


async def test_without_shortage_nobody_goes_over():
    pools = Pools(spare=2)
    waiting = pools.ask()
    await asyncio.sleep(0.01)
    assert not waiting.done()
    assert (pools.short.snapshot().waiting, pools.short.handed_over) == (1, 0)
    waiting.cancel()


async def test_those_who_wait_go_over_when_the_pool_gets_short_as_many_as_have_room():
    pools = Pools(spare=2)
    asked = [pools.ask() for _ in range(3)]
    await asyncio.sleep(0)
    pools.short.give_away(wanted=True)
    first, second = await asked[0], await asked[1]
    assert [grant.pool for grant in (first, second)] == ["spare", "spare"]
    assert (pools.short.snapshot().waiting, pools.spare.busy_slots()) == (1, {"p": 2})
    pools.release(first)
    third = await asked[2]
    assert (third.pool, pools.spare.in_flight_for("short")) == ("spare", 2)
    pools.release(second)
    pools.release(third)
    pools.check_nothing_is_left()


async def test_a_replica_that_comes_takes_all_who_have_waited_however_many():
    pools = Pools(requests_max=2000)
    pools.short.give_away(wanted=True)
    asked = [pools.ask() for _ in range(2000)]
    await asyncio.sleep(0)
    pools.spare.replica_ready(a_replica("p", 2000))
    for grant in await asyncio.gather(*asked):
        pools.release(grant)
    assert pools.short.handed_over == 2000
    pools.check_nothing_is_left()


async def test_an_arrival_stays_where_a_slot_is_free_and_else_goes_without_a_turn_of_the_loop():
    pools = Pools(short=1, spare=1)
    pools.short.give_away(wanted=True)
    turns = []
    asyncio.get_running_loop().call_soon(turns.append, 1)
    own, over = await pools.granted(), await pools.granted()
    assert ([own.pool, over.pool], turns) == (["short", "spare"], [])
    pools.release(own)
    pools.release(over)
    pools.check_nothing_is_left()


async def test_the_second_pool_serves_its_own_first():
    pools = Pools(spare=1)
    pools.short.give_away(wanted=True)
    running = await pools.granted(pools.spare)
    over, own = pools.ask(), pools.ask(pools.spare)
    await asyncio.sleep(0)
    pools.release(running)
    grant = await own
    assert not over.done()
    pools.release(grant)
    pools.release(await over)
    pools.check_nothing_is_left()


async def test_a_full_queue_refuses_nobody_for_whom_the_second_pool_has_a_slot():
    pools = Pools(short=1, spare=1, requests_max=0)
    pools.short.give_away(wanted=True)
    grants = [await pools.granted(), await pools.granted()]
    refused = await pools.ask()
    assert refused == Dropped(DropReason.QUEUE_FULL, refused.expected_wait)
    for grant in grants:
        pools.release(grant)
    pools.check_nothing_is_left()


async def test_who_was_refused_by_a_replica_goes_over():
    pools = Pools(short=1, spare=1)
    pools.short.give_away(wanted=True)
    again = await pools.short.retry(await pools.granted(), refused=True)
    assert (again.pool, again.request.tried) == ("spare", frozenset())
    pools.release(again)
    pools.check_nothing_is_left()


async def test_a_retry_at_the_second_pool_stays_there():
    pools = Pools(spare=1)
    pools.short.give_away(wanted=True)
    first = await pools.granted()
    second = await pools.spare.retry(first)
    assert (second.pool, pools.spare.in_flight_for("short")) == ("spare", 1)
    pools.release(second)
    pools.check_nothing_is_left()


@pytest.mark.parametrize("turns", [0, 1, 2])
async def test_a_client_that_leaves_around_the_hand_over_leaves_no_slot_taken(turns):
    pools = Pools()
    pools.short.give_away(wanted=True)
    asked = pools.ask()
    await asyncio.sleep(0)
    pools.spare.replica_ready(a_replica("p"))
    for _ in range(turns):
        await asyncio.sleep(0)
    if asked.cancel():
        with pytest.raises(asyncio.CancelledError):
            await asked
    else:
        pools.release(asked.result())
    assert pools.facts.outcomes.total() == 1
    pools.check_nothing_is_left()


async def test_after_the_shortage_requests_wait_for_their_own_pool_again():
    pools = Pools(short=1, spare=1)
    pools.short.give_away(wanted=True)
    over = [await pools.granted(), await pools.granted()][1]
    pools.short.give_away(wanted=False)
    waiting = pools.ask()
    pools.release(over)
    await asyncio.sleep(0)
    assert not waiting.done()
    waiting.cancel()


async def test_while_it_gives_away_nobody_is_refused_for_a_replica_that_comes_too_late():
    pools = Pools(clock_stops_max=0.0)
    pools.short.give_away(wanted=True)
    pools.short.replica_expected(CLOCK.now() + 1000.0)
    asked = pools.ask(timeout=50.0)
    await asyncio.sleep(0)
    pools.spare.replica_ready(a_replica("p"))
    pools.release(await asked)
    pools.check_nothing_is_left()


@pytest.mark.parametrize("seed", range(5))
async def test_whatever_happens_every_lease_is_given_back_and_nobody_waits_beside_a_free_slot(seed):
    dice, pools = random.Random(seed), Pools(clock_stops_max=1.0)
    drives, tasks, held = {"short": pools.short, "spare": pools.spare}, [], []
    for _ in range(400):
        what, name = dice.random(), dice.choice(["short", "spare"])
        if what < 0.45:
            tasks.append(pools.ask(drives[name]))
        elif what < 0.6:
            drives[name].replica_ready(a_replica(f"{name}{dice.randrange(3)}", dice.choice([1, 2])))
        elif what < 0.7:
            drives[name].replica_lost(f"{name}{dice.randrange(3)}")
        elif what < 0.8:
            pools.short.give_away(wanted=dice.random() < 0.7)
        elif what < 0.9 and tasks:
            tasks[dice.randrange(len(tasks))].cancel()
        for _ in range(dice.randrange(3)):
            await asyncio.sleep(0)
        held += [task.result() for task in tasks if task.done() and not task.cancelled()]
        tasks = [task for task in tasks if not task.done()]
        while held and dice.random() < 0.4:
            grant = held.pop(dice.randrange(len(held)))
            if isinstance(grant, Grant):
                pools.release(grant)
        there = {name: drive.snapshot() for name, drive in drives.items()}
        if pools.short.gives_away and there["short"].waiting:
            assert there["spare"].waiting or not pools.spare._dispatcher.slots_free
    for task in tasks:
        task.cancel()
    for ended in await asyncio.gather(*tasks, return_exceptions=True):
        held.append(ended)
    for grant in held:
        if isinstance(grant, Grant):
            pools.release(grant)
    pools.check_nothing_is_left()
