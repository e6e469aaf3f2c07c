"""The driver of the control path: asks, tells, and goes on when something outside fails."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from autoscaler.clock import VirtualClock
from autoscaler.control_loop import ControlLoop, ControlOptions
from autoscaler.control_loop import loop as control_loop
from autoscaler.control_loop.actuation import Actuation
from autoscaler.domain import Decision, Fleet, Hold, Objective, Observation, Reason
from autoscaler.errors import PlatformUnavailable
from autoscaler.fit_process import FitFailed
from autoscaler.scaling import Controller, DecisionPolicy
from tests.fakes.platform import InMemoryPlatform
from tests.fakes.replica_listener import FakeReplicaListener


class Decisions:
    """A decision log in memory."""

    def __init__(self) -> None:
        self.kept: list[Decision] = []

    def record(self, pool, observation, fleet, decision, now, wall_time) -> None:
        self.kept.append(decision)


async def called_at_once(job: Callable[[], Any], time_limit: float) -> Any:
    return job()


class Lead:
    """A leadership that the test gives and takes."""

    def __init__(self, is_leader: bool):
        self.is_leader = is_leader
        self.leader = None

    async def run(self) -> None:
        await asyncio.Event().wait()


class World:
    """A control loop with everything around it in memory; `tick` lets one interval pass."""

    def __init__(
        self,
        rate: float = 2.0,
        policy: DecisionPolicy | None = None,
        run_fit=called_at_once,
        leadership=None,
        ready: int = 2,
        **options,
    ):
        self.clock = VirtualClock(wall_time=1e6)
        self.platform = InMemoryPlatform(self.clock, cold_start=20.0, ready=ready)
        self.decisions = Decisions()
        self.rate: float | None = rate
        self.controller = Controller(Objective(wait_seconds=30.0), policy)
        self.loop = ControlLoop(
            "pool",
            self.controller,
            self.platform,
            self.observe,
            [self.decisions],
            self.clock,
            ControlOptions(**options),
            run_fit,
            leadership=leadership,
        )

    def observe(self, now: float, wall_time: float) -> Observation | None:
        if self.rate is None:
            return None
        arrivals = round(self.rate * 10)
        in_flight = 10 if arrivals else 0
        seen = (arrivals, arrivals, 5.0 * arrivals, 50.0 * arrivals, 5.0 * self.rate, in_flight, 0, 0.0)
        return Observation(10.0, *seen, wall_time)

    async def tick(self, times: int = 1) -> None:
        for _ in range(times):
            self.clock.move_to(self.clock.now() + 10.0)
            await self.loop.tick()
            await asyncio.sleep(0)


async def started(**world) -> World:
    made = World(**world)
    await made.platform.start(FakeReplicaListener())
    return made


async def test_decisions_are_logged_and_carried_out():
    world = await started()
    await world.tick(30)
    fleet = await world.platform.fleet()
    assert 10 / 0.75 <= fleet.ready <= 10 / 0.60 + 1
    assert len(world.decisions.kept) == 30
    assert world.loop.state is not None
    assert world.loop.state.decision == world.decisions.kept[-1]


async def test_recommending_decides_and_logs_but_touches_nothing():
    world = await started(actuate=False)
    await world.tick(30)
    assert world.platform.asked == []
    assert world.decisions.kept[-1].desired > 2


async def test_a_platform_that_cannot_be_asked_is_left_alone_and_caught_up_later():
    world = await started()
    await world.tick(2)
    asked = len(world.platform.asked)
    world.platform.is_unavailable = True
    await world.tick(5)
    assert len(world.platform.asked) == asked
    assert world.loop.trouble == "the platform in memory was told to refuse"
    world.platform.is_unavailable = False
    await world.tick(5)
    assert len(world.platform.asked) == asked + 5
    assert world.loop.trouble is None


class Refusing(InMemoryPlatform):
    """Tells the fleet, and takes no order."""

    async def scale_to(self, replicas: int) -> None:
        raise PlatformUnavailable("the quota is used up")


async def test_what_a_platform_refused_is_told_until_it_takes_an_order():
    world = await started()
    taking, refusing = world.platform, Refusing(world.clock, cold_start=20.0, ready=2)
    world.loop._actuation._platform = refusing
    await refusing.start(FakeReplicaListener())
    await world.tick(1)
    assert world.loop.trouble == "the quota is used up"
    world.loop._actuation._platform = taking
    await world.tick(1)
    assert world.loop.trouble is None


async def test_a_platform_that_never_answered_gives_nothing_to_decide_about():
    world = World()
    world.platform.is_unavailable = True
    await world.tick(3)
    assert (world.decisions.kept, world.loop.state) == ([], None)


async def test_f4_a_lost_measurement_holds():
    world = await started()
    await world.tick(30)
    before = (await world.platform.fleet()).ordered
    world.rate = None
    await world.tick(60)
    assert isinstance(world.decisions.kept[-1], Hold)
    assert world.decisions.kept[-1].reason is Reason.METRICS_LOST
    assert (await world.platform.fleet()).ordered == before


async def test_what_is_held_without_sight_is_told_to_nobody_for_the_fleet_may_be_seen_wrongly():
    world = await started()
    await world.tick(30)
    asked, world.rate = len(world.platform.asked), None
    world.platform.fleet = partial(_seen_as, await world.platform.fleet(), ready=3)  # type: ignore[method-assign]
    await world.tick(2)
    assert world.decisions.kept[-1].desired == 3
    assert len(world.platform.asked) == asked


async def _seen_as(fleet: Fleet, **counts: int) -> Fleet:
    return replace(fleet, **counts)


async def test_an_interval_that_was_slept_through_is_lost_and_lowers_nothing():
    world = await started()
    await world.tick(30)
    before = (await world.platform.fleet()).ordered
    inner = world.loop._observe
    world.loop._observe = lambda now, wall: replace(inner(now, wall), interval=35.0, arrivals=1)
    await world.tick(1)
    assert world.decisions.kept[-1].reason is Reason.METRICS_LOST
    assert (await world.platform.fleet()).ordered == before


async def test_a_fit_that_is_due_is_run_and_adopted_and_one_that_fails_changes_nothing():
    policy = DecisionPolicy(season=200.0, forecast_interval=10.0, refit_interval=100.0)
    ran = []

    async def run_fit(job: Callable[[], Any], time_limit: float) -> Any:
        ran.append(job)
        if len(ran) == 2:
            raise FitFailed("too slow")
        return job()

    world = await started(policy=policy, run_fit=run_fit)
    world.controller.warm(np.full(40, 20.0), 10.0, 1e6)
    await world.tick(40)
    assert len(ran) >= 3
    assert isinstance(ran[0], partial)
    assert world.decisions.kept[-1].numbers.forecast_rate == pytest.approx(2.0, rel=0.1)


async def test_a_fit_that_never_ends_delays_no_decision_and_is_not_started_twice():
    policy = DecisionPolicy(season=200.0, forecast_interval=10.0, refit_interval=100.0)
    started_fits = 0

    async def run_fit(job: Callable[[], Any], time_limit: float) -> Any:
        nonlocal started_fits
        started_fits += 1
        await asyncio.Event().wait()

    world = await started(policy=policy, run_fit=run_fit)
    world.controller.warm(np.full(40, 20.0), 10.0, 1e6)
    await world.tick(40)
    assert (len(world.decisions.kept), started_fits) == (40, 1)
    running = asyncio.create_task(world.loop.run())
    await asyncio.sleep(0)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert all("fit" not in task.get_name() for task in asyncio.all_tasks())


async def test_what_was_asked_for_is_shown_to_the_controller_once_the_platform_has_taken_it():
    world = await started()
    await world.tick(1)
    assert world.loop.state.fleet.asked is None
    wanted = world.loop.state.decision.desired
    world.platform.is_unavailable = True
    await world.tick(1)
    assert world.loop.state.fleet.asked is None  # as it was last seen, so nothing can be expected of it
    world.platform.is_unavailable = False
    await world.tick(1)
    assert world.loop.state.fleet.asked == wanted


async def test_who_recommends_or_stands_by_has_asked_for_nothing():
    for world in (await started(actuate=False), await started(leadership=Lead(False))):
        world.platform.edited = 7
        await world.tick(30)
        assert world.platform.asked == []
        assert (world.loop.state.fleet.asked, world.loop.state.fleet.edited) == (None, None)
        assert world.loop.state.decision.desired > 10


async def test_it_acts_if_it_may_and_leads():
    lead = Lead(True)
    assert (await started()).loop.acts
    assert not (await started(actuate=False)).loop.acts
    assert not (await started(actuate=False, leadership=lead)).loop.acts
    loop = (await started(leadership=lead)).loop
    assert loop.acts
    lead.is_leader = False
    assert not loop.acts


async def test_a_platform_that_goes_on_by_itself_is_told_when_the_lead_has_gone():
    stood_by = []
    lead = Lead(False)
    world = await started(leadership=lead)
    world.platform.stand_by = lambda: stood_by.append(len(world.decisions.kept))
    await world.tick(2)
    assert stood_by == [0]  # for it may have led when it ran last, and left something to be done
    lead.is_leader = True
    await world.tick(2)
    assert stood_by == [0]
    lead.is_leader = False
    await world.tick(3)
    assert stood_by == [0, 4]  # at once, and once


@pytest.mark.parametrize(("leadership", "dropped"), [(Lead(True), 1), (None, 0)])
async def test_who_begins_drops_what_an_earlier_run_left_if_another_may_have_led_since(leadership, dropped):
    stood_by = []
    world = await started(leadership=leadership)
    world.platform.stand_by = lambda: stood_by.append(len(world.platform.asked))
    await world.tick(3)
    assert stood_by == [0] * dropped  # before it tells anything, and never again
    assert len(world.platform.asked) == 3


async def test_a_platform_that_acts_some_time_after_can_ask_whether_it_still_may():
    class Later(InMemoryPlatform):
        def act_while(self, may_act: Callable[[], bool]) -> None:
            self.may_act = may_act

    lead, clock = Lead(True), VirtualClock()
    alone, one_of_two = Later(clock), Later(clock)
    Actuation("pool", alone, wanted=True, leadership=None)
    Actuation("pool", one_of_two, wanted=True, leadership=lead)
    assert not hasattr(alone, "may_act")
    assert one_of_two.may_act()
    lead.is_leader = False
    assert not one_of_two.may_act()


async def test_f15_one_of_two_acts_and_the_other_decides_the_same():
    lead, other = Lead(True), Lead(False)
    world, standby = await started(leadership=lead), await started(leadership=other)
    standby.platform = standby.loop._actuation._platform = world.platform
    for _ in range(30):
        await world.tick()
        await standby.tick()
    assert standby.loop.state.decision.desired == world.loop.state.decision.desired
    asked = len(world.platform.asked)
    lead.is_leader, other.is_leader = False, True
    await world.tick()
    assert len(world.platform.asked) == asked
    await standby.tick()
    assert world.platform.asked[asked:] == [world.platform.asked[asked - 1]]


@asynccontextmanager
async def between_two_ticks(world: World, monkeypatch) -> AsyncIterator[None]:
    """Run the loop long before its next tick, so that all that happens inside is what the lead brings."""
    monkeypatch.setattr(control_loop, "_LEAD_LOOK", 0.005)
    world.clock.now = asyncio.get_running_loop().time  # type: ignore[method-assign]
    world.loop._options = ControlOptions(interval=60.0)
    running = asyncio.create_task(world.loop.run())
    await asyncio.sleep(0.05)
    assert world.platform.asked == []
    yield
    await asyncio.sleep(0.1)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_who_comes_to_lead_between_two_ticks_orders_at_once_what_it_decided_last(monkeypatch):
    lead = Lead(False)
    world = await started(leadership=lead)
    await world.tick(2)
    async with between_two_ticks(world, monkeypatch):
        lead.is_leader = True
    assert world.platform.asked == [world.loop.state.decision.desired]


async def test_who_comes_to_lead_carries_out_nothing_that_it_decided_on_a_fleet_of_before(monkeypatch):
    lead = Lead(False)
    world = await started(leadership=lead)
    await world.tick(2)
    world.platform.is_unavailable = True  # as it is for the one that leads, who gives up the lead
    await world.tick(1)
    async with between_two_ticks(world, monkeypatch):
        lead.is_leader, world.platform.is_unavailable = True, False
    assert world.platform.asked == []


async def test_who_comes_to_lead_takes_back_nothing_that_was_ordered_since_it_decided(monkeypatch):
    lead = Lead(False)
    world = await started(leadership=lead)
    await world.tick(2)
    decided = world.loop.state.decision
    assert decided.desired > decided.current
    async with between_two_ticks(world, monkeypatch):
        await world.platform.scale_to(decided.desired + 1)  # by whoever leads, and is gone thereupon
        lead.is_leader = True
    assert world.platform.asked == [decided.desired + 1]


async def test_an_order_between_two_ticks_is_not_taken_back_before_the_platform_shows_it(monkeypatch):
    lead = Lead(False)
    world = await started(leadership=lead, ready=11)
    await world.tick(2)
    ordered = world.loop.state.decision.desired
    before = await world.platform.fleet()
    async with between_two_ticks(world, monkeypatch):
        lead.is_leader = True
    assert world.platform.asked == [ordered]
    shown, world.rate = world.platform.fleet, 1.0  # so that fewer would do

    async def not_shown_yet() -> Fleet:
        return before

    world.platform.fleet = not_shown_yet
    world.clock.now = lambda: 30.0  # type: ignore[method-assign]
    await world.loop.tick()
    assert world.loop.state.decision.desired < ordered
    assert world.platform.asked == [ordered]
    world.platform.fleet = shown
    world.clock.now = lambda: 40.0  # type: ignore[method-assign]
    await world.loop.tick()
    assert len(world.platform.asked) == 2


async def test_a_lead_that_goes_again_during_the_first_look_orders_nothing(monkeypatch):
    lead = Lead(False)
    world = await started(leadership=lead)
    await world.tick(2)
    look = world.platform.fleet

    async def loses_the_lead_meanwhile() -> Fleet:
        fleet = await look()
        lead.is_leader = False
        return fleet

    async with between_two_ticks(world, monkeypatch):
        world.platform.fleet = loses_the_lead_meanwhile
        lead.is_leader = True
    assert not lead.is_leader
    assert world.platform.asked == []


async def test_who_comes_to_lead_with_nothing_to_order_waits_for_its_next_decision(monkeypatch):
    lead = Lead(False)
    world = await started(leadership=lead, ready=16)  # what 2 requests a second of 5 s need
    await world.tick(2)
    assert isinstance(world.loop.state.decision, Hold)
    async with between_two_ticks(world, monkeypatch):
        lead.is_leader = True
    assert world.platform.asked == []


class SeenLate(InMemoryPlatform):
    """Says what there was when it looked last; `looks` [1] so often it did."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.looks, self._as_seen = 0, None

    async def look_anew(self) -> None:
        self._as_seen, self.looks = await super().fleet(), self.looks + 1

    async def fleet(self) -> Fleet:
        if self._as_seen is None:
            self._as_seen = await super().fleet()
        return self._as_seen


class TestLookingAnew:
    """A platform that says what it was told some time ago."""

    @pytest.fixture
    async def standby(self):
        world = await started(leadership=Lead(False))
        seen_late = SeenLate(world.clock, cold_start=20.0, ready=2)
        await seen_late.start(FakeReplicaListener())
        world.platform = world.loop._actuation._platform = seen_late
        await world.tick(3)
        return world

    async def test_who_stands_by_does_not_and_who_leads_does_once(self, standby):
        assert standby.platform.looks == 0
        standby.loop._actuation._leadership.is_leader = True
        await standby.tick(5)
        assert standby.platform.looks == 1
        standby.loop._actuation._leadership.is_leader = False
        await standby.tick(2)
        standby.loop._actuation._leadership.is_leader = True
        await standby.tick(2)
        assert standby.platform.looks == 2

    async def test_who_only_recommends_never_does_and_drops_nothing(self, standby):
        standby.loop._actuation._wanted, standby.loop._actuation._led = False, None
        standby.platform.stand_by = lambda: pytest.fail("it stood by")
        standby.loop._actuation._leadership.is_leader = True
        await standby.tick(2)
        assert standby.platform.looks == 0

    async def test_who_comes_to_lead_sees_what_was_ordered_just_before(self, standby):
        await standby.platform.scale_to(15)
        standby.platform.asked.clear()
        standby.loop._actuation._leadership.is_leader = True
        await standby.tick()
        assert standby.loop.state.fleet.ordered == 15
        assert min(standby.platform.asked) >= 15

    async def test_what_was_looked_at_anew_is_given_up_with_a_lead_that_goes_meanwhile(self, standby):
        happened, lead = [], standby.loop._actuation._leadership

        async def look_anew() -> None:
            happened.append("looked anew")
            lead.is_leader = False

        standby.platform.look_anew = look_anew
        standby.platform.stand_by = lambda: happened.append("stands by")
        lead.is_leader = True
        await standby.tick()
        assert happened == ["looked anew", "stands by"]

    async def test_who_begins_with_the_lead_drops_what_is_left_before_it_looks_anew(self, standby):
        happened = []

        async def look_anew() -> None:
            happened.append("looked anew")

        standby.platform.look_anew = look_anew
        standby.platform.stand_by = lambda: happened.append("stands by")
        standby.loop._actuation._led = None  # nobody has looked yet
        standby.loop._actuation._leadership.is_leader = True
        await standby.tick()
        assert happened == ["stands by", "looked anew"]

    async def test_nothing_is_told_before_a_look_has_succeeded(self, standby):
        standby.loop._actuation._leadership.is_leader = True
        standby.platform.is_unavailable = True
        await standby.tick(3)
        assert standby.platform.asked == []
        assert standby.loop.trouble is not None
        standby.platform.is_unavailable = False
        await standby.tick()
        assert len(standby.platform.asked) == 1

    async def test_a_lead_that_comes_during_a_look_waits_for_the_next(self, standby):
        lead, look = standby.loop._actuation._leadership, standby.platform.fleet

        async def comes_to_lead_meanwhile() -> Fleet:
            fleet = await look()
            lead.is_leader = True
            return fleet

        standby.platform.fleet = comes_to_lead_meanwhile
        await standby.tick()
        assert standby.platform.asked == []
        await standby.tick()
        assert len(standby.platform.asked) == 1
        assert standby.platform.looks == 1


async def test_f6_what_does_not_come_is_said_once_and_not_ordered_for_ever(capsys):
    world = await started(rate=4.0)
    world.platform.room = 3
    await world.tick(100)
    told = capsys.readouterr()
    assert (told.out + told.err).count("what is ordered does not come  ") == 1
    assert max(world.platform.asked[-60:]) <= 3 + 1
    world.platform.room = 1000
    await world.tick(200)
    assert (await world.platform.fleet()).ready >= 20 / 0.75


async def test_f15_an_edit_is_said_with_both_numbers(capsys):
    world = await started()
    await world.tick(30)
    wanted = world.platform.asked[-1]
    world.platform.edited = 3
    await world.tick()
    told = capsys.readouterr()
    assert f"somebody else asked for 3 instead of {wanted}" in told.out + told.err
    assert world.loop.state.fleet.edited == 3


async def test_occupancy_is_slot_time_in_use_over_slot_time_there():
    world = await started(actuate=False, rate=0.2)
    await world.tick(5)
    assert world.loop.state is not None
    assert world.loop.state.occupancy == pytest.approx(0.5)  # 0.2/s x 5 s of 2 slots


async def test_occupancy_is_no_more_than_all_where_slots_came_early_in_an_interval():
    world = await started(actuate=False, rate=0.2)
    await world.tick()
    busy = world.observe
    world.loop._observe = lambda now, wall_time: replace(busy(now, wall_time), busy_slots_mean=5.0)
    await world.tick()
    assert world.loop.state.occupancy == 1.0


async def test_the_loop_ticks_at_even_times_until_it_is_cancelled():
    ticks = []
    world = await started()
    world.loop.tick = lambda: _note(ticks)  # type: ignore[method-assign]
    world.clock.now = asyncio.get_running_loop().time  # type: ignore[method-assign]
    world.loop._options = ControlOptions(interval=0.01)
    running = asyncio.create_task(world.loop.run())
    while len(ticks) < 3:
        await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def _note(ticks: list[None]) -> None:
    ticks.append(None)


class TestWaking:
    """A pool at zero, and a control interval that is much longer than any test."""

    @pytest.fixture
    async def asleep(self, monkeypatch):
        monkeypatch.setattr(control_loop, "WAKE_DELAY", 0.01)
        world = await started(rate=0.0, policy=DecisionPolicy(replicas_min=0), ready=0, interval=3600.0)
        await world.tick()
        assert world.decisions.kept[-1].desired == 0
        running = asyncio.create_task(world.loop.run())
        await asyncio.sleep(0)
        yield world
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    async def test_a_request_has_it_decided_on_at_once(self, asleep):
        asleep.rate = 0.1
        asleep.clock.move_to(asleep.clock.now() + 3.0)
        asleep.loop.wake()
        await asyncio.sleep(0.1)
        assert asleep.decisions.kept[-1].desired > 0
        assert (await asleep.platform.fleet()).ordered > 0

    async def test_a_burst_is_decided_on_once_and_who_is_awake_is_not_woken(self, asleep):
        asleep.rate, before = 0.1, len(asleep.decisions.kept)
        asleep.clock.move_to(asleep.clock.now() + 3.0)
        for _ in range(100):
            asleep.loop.wake()
        await asyncio.sleep(0.1)
        asleep.loop.wake()
        await asyncio.sleep(0.1)
        assert len(asleep.decisions.kept) == before + 1
