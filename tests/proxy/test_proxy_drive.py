"""The driver of the dispatcher: every promise about slots, at every moment a task can be cancelled."""

import asyncio
import random
from dataclasses import replace

import pytest

from autoscaler.clock import SystemClock
from autoscaler.dispatch import Dispatcher, QueueOptions
from autoscaler.dispatch.health import HealthOptions
from autoscaler.dispatch.options import DispatchOptions
from autoscaler.domain import DropReason, Outcome, Request
from autoscaler.ports import Replica
from autoscaler.proxy.drive import PoolDrive
from autoscaler.proxy.grant import Dropped, Grant
from tests.fakes.front import Facts

CLOCK = SystemClock()


def a_drive(
    slots: dict[str, int] | None = None, queue: QueueOptions | None = None, **options: object
) -> tuple[PoolDrive, Facts]:
    facts = Facts()
    dispatcher = Dispatcher(queue or QueueOptions(clock_stops_max=0.0), DispatchOptions(**options))
    drive = PoolDrive("pool", dispatcher, CLOCK, [facts])
    for replica_id, count in (slots or {}).items():
        drive.replica_ready(a_replica(replica_id, count))
    return drive, facts


def a_replica(replica_id: str = "a", slots: int = 1) -> Replica:
    return Replica(replica_id, f"http://{replica_id}", slots)


_ids = iter(range(10**9))


def a_request(timeout: float = 60.0) -> Request:
    now = CLOCK.now()
    return Request(id=f"q{next(_ids)}", arrived_at=now, deadline=now + timeout)


async def acquired(drive: PoolDrive) -> Grant:
    grant = await drive.acquire(a_request())
    assert isinstance(grant, Grant)
    return grant


def queued(drive: PoolDrive, timeout: float = 60.0) -> "asyncio.Task[Grant | Dropped]":
    return asyncio.create_task(drive.acquire(a_request(timeout)))


async def test_a_free_slot_is_granted_without_a_turn_of_the_loop():
    drive, facts = a_drive({"a": 1})
    turns = []
    asyncio.get_running_loop().call_soon(turns.append, 1)
    grant = await acquired(drive)
    assert turns == []
    assert (grant.replica.url, drive.busy_slots()) == ("http://a", {"a": 1})
    drive.release(grant, Outcome.COMPLETED)
    assert drive.idle
    assert [fact for fact, _ in facts.told] == ["arrived", "started", "slot_freed", "ended"]


async def test_a_freed_slot_goes_to_the_first_in_the_queue_and_facts_come_in_order():
    drive, facts = a_drive({"a": 1})
    first = await acquired(drive)
    second, third = queued(drive), queued(drive)
    await asyncio.sleep(0)
    assert drive.snapshot().waiting == 2
    drive.release(first, Outcome.COMPLETED)
    grant = await second
    assert not third.done()
    assert [fact for fact, _ in facts.told] == [
        "arrived", "started", "arrived", "arrived", "slot_freed", "ended", "started",
    ]  # fmt: skip
    drive.release(grant, Outcome.COMPLETED)
    drive.release(await third, Outcome.COMPLETED)
    facts.check_all_has_ended()


async def test_t5_releasing_twice_is_releasing_once():
    drive, facts = a_drive({"a": 2})
    grant, other = await acquired(drive), await acquired(drive)
    drive.release(grant, Outcome.COMPLETED)
    drive.release(grant, Outcome.FAILED)
    assert drive.busy_slots() == {"a": 1}
    assert facts.outcomes == {Outcome.COMPLETED: 1}
    drive.release(other, Outcome.COMPLETED)


async def test_r4_who_leaves_the_queue_leaves_at_once():
    drive, facts = a_drive({"a": 1})
    grant, waiting = await acquired(drive), queued(drive)
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert drive.snapshot().waiting == 0
    assert facts.outcomes == {Outcome.CANCELLED: 1}
    drive.release(grant, Outcome.COMPLETED)
    facts.check_all_has_ended()


@pytest.mark.parametrize("cancel_first", [True, False])
async def test_s17_cancelled_in_the_very_turn_in_which_the_slot_came(cancel_first):
    drive, facts = a_drive({"a": 1})
    grant, waiting = await acquired(drive), queued(drive)
    await asyncio.sleep(0)
    if cancel_first:
        waiting.cancel()
        drive.release(grant, Outcome.COMPLETED)
    else:
        drive.release(grant, Outcome.COMPLETED)
        waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert drive.idle
    assert facts.outcomes == {Outcome.COMPLETED: 1, Outcome.CANCELLED: 1}
    facts.check_all_has_ended()


async def test_a_deadline_drops_who_waits_for_it_and_nobody_else():
    drive, facts = a_drive({"a": 1})
    grant = await acquired(drive)
    patient, hasty = queued(drive), queued(drive, timeout=0.02)
    assert (await hasty).reason is DropReason.DEADLINE_PASSED
    assert facts.reasons == {DropReason.DEADLINE_PASSED: 1}
    drive.release(grant, Outcome.COMPLETED)
    drive.release(await patient, Outcome.COMPLETED)


async def test_without_a_replica_the_same_wait_ends_for_want_of_capacity():
    drive, facts = a_drive()
    assert (await queued(drive, timeout=0.02)).reason is DropReason.NO_CAPACITY
    assert facts.outcomes == {Outcome.EXPIRED: 1}


async def test_k2_a_queue_drains_to_new_replicas_at_once():
    drive, _ = a_drive({"a": 1})
    first = await acquired(drive)
    waiting = [queued(drive) for _ in range(4)]
    await asyncio.sleep(0)
    drive.replica_ready(a_replica("b", 2))
    drive.replica_ready(a_replica("c", 2))
    grants = await asyncio.gather(*waiting)
    assert sorted(grant.replica.id for grant in grants) == ["b", "b", "c", "c"]
    for grant in [first, *grants]:
        drive.release(grant, Outcome.COMPLETED)


async def test_s5_arrivals_in_one_burst_are_spread_evenly():
    drive, _ = a_drive(dict.fromkeys("abcd", 8))
    grants = [await acquired(drive) for _ in range(32)]
    assert drive.busy_slots() == dict.fromkeys("abcd", 8)
    for grant in grants:
        drive.release(grant, Outcome.COMPLETED)


async def test_a_lost_replica_is_forgotten_with_its_last_lease_and_an_incarnation_keeps_its_count():
    drive, _ = a_drive({"a": 2})
    grant, other = await acquired(drive), await acquired(drive)
    drive.replica_lost("a")
    assert [replica.busy for replica in drive.snapshot().replicas] == [2]
    drive.release(grant, Outcome.FAILED)
    drive.replica_ready(a_replica("a", 2))  # E2: ready again in mid-request
    assert drive.busy_slots() == {"a": 1}
    drive.replica_lost("a")
    drive.release(other, Outcome.FAILED)
    assert drive.snapshot().replicas == ()
    assert drive.snapshot().slots == 0
    assert drive._replicas == {}  # a pool that churns for weeks keeps no addresses


async def test_a_retry_goes_elsewhere_and_the_request_stays_the_same_to_all():
    drive, facts = a_drive({"a": 4, "b": 1})
    grant = await acquired(drive)
    again = await drive.retry(grant, refused=True)
    assert isinstance(again, Grant)
    assert again.replica.id != grant.replica.id
    assert again.request == replace(grant.request, tried=frozenset({grant.replica.id}))
    assert sum(drive.busy_slots().values()) == 1
    drive.release(grant, Outcome.COMPLETED)  # the first slot is given back already
    assert not drive.idle
    drive.release(again, Outcome.COMPLETED)
    assert drive.idle
    assert [fact for fact, _ in facts.told] == [
        "arrived", "started", "returned", "started", "slot_freed", "ended",
    ]  # fmt: skip
    facts.check_all_has_ended()


async def test_a_retry_waits_before_those_who_came_later():
    drive, facts = a_drive({"a": 1, "b": 1})
    refused, other = await acquired(drive), await acquired(drive)
    later = queued(drive)
    await asyncio.sleep(0)
    again = asyncio.create_task(drive.retry(refused, refused=True))
    await asyncio.sleep(0)
    assert drive.snapshot().waiting == 2
    drive.release(other, Outcome.COMPLETED)
    grant = await again
    assert grant.request.id == refused.request.id
    assert not later.done()
    drive.release(grant, Outcome.COMPLETED)
    drive.release(await later, Outcome.COMPLETED)
    facts.check_all_has_ended()


async def test_a_replica_that_refused_is_offered_again_after_a_moment():
    drive, _ = a_drive({"a": 1}, health=HealthOptions(spare_refused=0.02))
    grant = await acquired(drive)
    again = await drive.retry(grant, refused=True)
    assert isinstance(again, Grant)
    assert again.started_at - grant.started_at >= 0.015
    drive.release(again, Outcome.COMPLETED)


async def test_a_replica_whose_call_broke_is_spared_for_a_moment_so_that_what_waits_goes_elsewhere():
    drive, facts = a_drive({"a": 1, "b": 1})
    broken, other = await acquired(drive), await acquired(drive)
    waiting = queued(drive)
    await asyncio.sleep(0)
    drive.release(broken, Outcome.FAILED)
    assert not waiting.done()
    drive.release(other, Outcome.COMPLETED)
    grant = await waiting
    assert grant.replica.id == other.replica.id
    drive.release(grant, Outcome.COMPLETED)
    facts.check_all_has_ended()


@pytest.mark.parametrize("word", ["replica_draining", "replica_lost"])
async def test_the_platform_has_the_last_word_on_a_replica_that_refused(word):
    drive, facts = a_drive({"a": 1}, health=HealthOptions(spare_refused=0.01))
    grant = await queued(drive, timeout=0.05)
    again = asyncio.create_task(drive.retry(grant, refused=True))
    await asyncio.sleep(0)
    getattr(drive, word)("a")
    assert (await again).reason is DropReason.NO_CAPACITY
    facts.check_all_has_ended()


async def test_a_retry_whose_client_leaves_is_forgotten():
    drive, facts = a_drive({"a": 1})
    grant = await acquired(drive)
    again = asyncio.create_task(drive.retry(grant, refused=True))
    await asyncio.sleep(0)
    again.cancel()
    await asyncio.gather(again, return_exceptions=True)
    drive.release(grant, Outcome.CANCELLED)
    assert drive.idle
    assert facts.outcomes == {Outcome.CANCELLED: 1}
    facts.check_all_has_ended()


async def test_a_slot_whose_request_is_gone_is_found_freed_and_counted():
    drive, facts = a_drive({"a": 1})
    await asyncio.create_task(drive.acquire(a_request()))  # ends without a release: a fault
    assert drive.busy_slots() == {"a": 1}
    assert drive.reconcile() == 1
    assert drive.idle
    assert drive.snapshot().slots_leaked == 1
    assert facts.outcomes == {Outcome.FAILED: 1}
    assert drive.reconcile() == 0


async def test_expected_wait_follows_the_service_times_that_were_seen():
    drive, _ = a_drive({"a": 1})
    grant = await acquired(drive)
    assert drive.snapshot().expected_wait is None
    await asyncio.sleep(0.02)
    drive.release(grant, Outcome.COMPLETED)
    assert drive.snapshot().expected_wait == 0.0
    grant = await acquired(drive)
    assert 0.015 < drive.snapshot().expected_wait < 10
    drive.release(grant, Outcome.COMPLETED)


async def test_closing_lets_nothing_new_in_and_what_waits_goes_on():
    drive, facts = a_drive({"a": 1})
    grant, waiting = await acquired(drive), queued(drive)
    await asyncio.sleep(0)
    drive.close()
    late = await drive.acquire(a_request())
    assert late == Dropped(DropReason.CLOSING, None)
    drive.release(grant, Outcome.COMPLETED)
    drive.release(await waiting, Outcome.COMPLETED)
    assert facts.reasons == {DropReason.CLOSING: 1}


@pytest.mark.parametrize("seed", range(5))
async def test_s9_r3_nothing_leaks_when_tasks_are_cancelled_at_random_moments(seed):
    rng = random.Random(seed)
    drive, facts = a_drive({"a": 2, "b": 1}, QueueOptions(requests_max=8))

    async def use_a_slot() -> None:
        grant = await drive.acquire(a_request(timeout=rng.choice([0.003, 60.0])))
        if isinstance(grant, Dropped):
            return
        try:
            if rng.random() < 0.2:
                again = await drive.retry(grant, refused=rng.random() < 0.5)
                if isinstance(again, Dropped):
                    return
                grant = again
            for _ in range(rng.randrange(4)):
                await asyncio.sleep(0)
        finally:
            drive.release(grant, Outcome.COMPLETED)

    tasks: list[asyncio.Task[None]] = []
    for _ in range(400):
        tasks.append(asyncio.create_task(use_a_slot()))
        if rng.random() < 0.5:
            await asyncio.sleep(0)
        if rng.random() < 0.4:
            rng.choice(tasks).cancel()
        if rng.random() < 0.05:
            rng.choice([drive.replica_lost, drive.replica_draining])("b")
        if rng.random() < 0.1:
            drive.replica_ready(a_replica("b", rng.randrange(1, 3)))
    await asyncio.gather(*tasks, return_exceptions=True)
    assert drive.idle
    assert drive.reconcile() == 0
    facts.check_all_has_ended()
