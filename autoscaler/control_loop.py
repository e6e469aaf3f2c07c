"""The driver of the control path: every interval, observe, ask the controller, tell the platform.

It is the only part of the control path that waits. What fails outside (the platform cannot be asked, a
fit breaks) is said, and the loop goes on: the fleet then stays as it is, which is the safe side.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from math import inf, nan
from typing import Any

import structlog

from autoscaler.decision_news import DecisionNews
from autoscaler.domain import Decision, Fleet, Observation, Reason, ScaleTo
from autoscaler.errors import AutoscalerError, PlatformUnavailable
from autoscaler.ports import Clock, ControllerJournal, DecisionLog, Leadership, Platform, StandsBy
from autoscaler.scaling import Controller
from autoscaler.scaling.options import WAKE_DELAY

log = structlog.get_logger(__name__)

_TRUSTED_INTERVALS = 3.0
"""An interval so many times as long as it should be was slept through, and says nothing of the demand."""
_OCCUPANCY_INTERVALS = 30  # of which the rolling occupancy is a mean
_LEAD_LOOK = 1.0
"""Whether the lead has come to this one is looked at so often between two ticks [s]."""
_WAKE_PAUSE = 1.0
"""A pool that stays at zero nevertheless is not woken again before this [s]."""
CHECKPOINT_INTERVAL = 86400.0
"""Between two copies of the controller [s]; a decision is re-executed from the copy before it on."""


@dataclass(frozen=True, slots=True)
class ControlOptions:
    """How often, and whether at all, the platform is told."""

    interval: float = 10.0
    """Between decisions [s]; shorter follows faster and logs more."""
    actuate: bool = True
    """Whether decisions are carried out; if not, they are made, logged and exported only."""
    fit_time_limit: float = 60.0
    """A fit that takes longer is ended and the forecast goes on without it [s]."""


@dataclass(frozen=True, slots=True)
class ControlState:
    """What the last tick knew; for eyes."""

    observation: Observation | None
    fleet: Fleet
    decision: Decision
    wall_time: float
    occupancy: float
    """Busy slots / slots over the last interval [1]; NaN if there were none."""
    occupancy_rolling: float
    """The same over the last intervals [1]."""


class ControlLoop:
    """One pool's control path in time.

    Parameters
    ----------
    observe : callable
        (now, wall_time) -> Observation of the interval that ends now, or None if it is lost.
    logs : sequence of DecisionLog
        Told every decision.
    run_fit : callable
        (job, time limit [s]) -> awaitable of the job's result; may raise AutoscalerError.
    journal : ControllerJournal, optional
        Given the controller before its first step and once a day, and each fit that it adopts.
    leadership : Leadership, optional
        Who does not lead decides as well, and tells the platform nothing; None: nobody else could lead.
    follow : callable, optional
        Told each step's observation, fleet, decision and time at once; returns the decision with what pools
        that stand in for each other have to say of it.
    """

    def __init__(
        self,
        pool: str,
        controller: Controller,
        platform: Platform,
        observe: Callable[[float, float], Observation | None],
        logs: Sequence[DecisionLog],
        clock: Clock,
        options: ControlOptions,
        run_fit: Callable[[Callable[[], Any], float], Awaitable[Any]],
        journal: ControllerJournal | None = None,
        leadership: Leadership | None = None,
        follow: Callable[[Observation | None, Fleet, Decision, float], Decision] | None = None,
    ) -> None:
        self._pool = pool
        self._controller = controller
        self._platform = platform
        self._observe = observe
        self._logs = tuple(logs)
        self._clock = clock
        self._options = options
        self._run_fit = run_fit
        self._journal = journal
        self._leadership = leadership
        self._follow = follow
        self._checkpoint_at: float | None = None
        self._last_step = (nan, nan)  # now and wall time
        self._fit: asyncio.Task[None] | None = None
        self._fleet: Fleet | None = None
        self._unasked: str | None = None
        self._refused: str | None = None
        self._told: int | None = None
        self._asked: int | None = None
        self._news = DecisionNews(pool)
        self._led = False
        self._to_carry_out: Decision | None = None
        self._slots_before = 0
        self._recent: list[tuple[float, float]] = []
        self.state: ControlState | None = None
        self._woken, self._woken_at = asyncio.Event(), -inf

    async def run(self) -> None:
        """Tick for ever, at even times; a tick that is missed is not made up for."""
        due = self._clock.now()
        try:
            while True:
                due = max(due + self._options.interval, self._clock.now())
                if await self._is_woken_before(due):
                    due = self._clock.now()
                await self.tick()
        finally:
            if self._fit is not None:
                self._fit.cancel()
                await asyncio.gather(self._fit, return_exceptions=True)

    def wake(self) -> bool:
        """Decide at once if there is no replica and none was asked for, as somebody waits; whether it is."""
        is_asleep = self.state is None or not (self.state.decision.desired or self.state.fleet.ordered)
        if is_asleep:
            self._woken.set()
        return is_asleep

    async def _is_woken_before(self, due: float) -> bool:
        """Wait until `due` [s], or until the pool is woken; whether it was.

        If the lead comes to this one meanwhile, carry out what it decided last.
        """
        longest = inf if self._leadership is None else _LEAD_LOOK
        while True:
            if await self._is_woken(within=min(due - self._clock.now(), longest)):
                return True
            if due <= self._clock.now():
                return False
            if self._has_come_to_lead() and self._to_carry_out is not None:
                await self._actuate(self._to_carry_out)

    async def _is_woken(self, within: float) -> bool:
        """Wait to be woken, for so long [s]; whether it was."""
        try:
            async with asyncio.timeout(within):
                await self._woken.wait()
        except TimeoutError:
            return False
        await asyncio.sleep(max(WAKE_DELAY, self._woken_at + _WAKE_PAUSE - self._clock.now()))
        self._woken_at = self._clock.now()
        self._woken.clear()
        return True

    def _has_come_to_lead(self) -> bool:
        """Whether it leads, and did not when last asked; who does not lead has asked for nothing."""
        led, self._led = self._led, self._leads
        if not self._led:
            if (led or self._asked is not None) and isinstance(self._platform, StandsBy):
                self._platform.stand_by()
            self._asked = self._refused = None
        return self._led and not led

    async def tick(self) -> None:
        """One interval: observe, decide, actuate; and start a fit if one is due."""
        now, wall_time = self._clock.now(), self._clock.wall_time()
        observation = self._trusted(self._observe(now, wall_time))
        reachable = await self._ask_fleet()
        if self._fleet is None:
            return
        fleet = self._as_asked(self._fleet, reachable)
        self._checkpoint_if_due(now, wall_time)
        decision = self._controller.step(observation, fleet, now)
        if self._follow is not None:
            decision = self._follow(observation, fleet, decision, now)
        self._last_step = (now, wall_time)
        for each in self._logs:
            each.record(self._pool, observation, fleet, decision, now, wall_time)
        self._remember(observation, fleet)
        self.state = ControlState(
            observation,
            fleet,
            decision,
            wall_time,
            _occupancy(self._recent[-1:]),
            _occupancy(self._recent),
        )
        if isinstance(decision, ScaleTo) and decision.desired != self._told:
            log.info(self._what_becomes_of_it(), pool=self._pool, desired=decision.desired, why=str(decision))
        self._told = decision.desired
        self._news.follow(decision)
        self._to_carry_out = decision if self._options.actuate and reachable and _is_seen(decision) else None
        if self._to_carry_out is not None and self._leads:
            await self._actuate(self._to_carry_out)
        self._start_fit_if_due(now)

    @property
    def trouble(self) -> str | None:
        """Why the platform could not be asked last, or refused, for a person; None if it did neither."""
        return self._unasked or self._refused

    @property
    def acts(self) -> bool:
        """Whether what is decided is carried out, and from here."""
        return self._options.actuate and self._leads

    @property
    def _leads(self) -> bool:
        return self._leadership is None or self._leadership.is_leader

    def _as_asked(self, fleet: Fleet, reachable: bool) -> Fleet:
        """Say what it was asked for from here; nothing, if that was nothing, or if it is not seen now."""
        self._has_come_to_lead()
        if self._asked is None or not reachable:
            return replace(fleet, asked=None, edited=None)
        return replace(fleet, asked=self._asked)

    def _what_becomes_of_it(self) -> str:
        if not self._options.actuate:
            return "recommended, carried out by nobody"
        return "scale" if self._leads else "decided; whoever leads carries out its own"

    def _trusted(self, observation: Observation | None) -> Observation | None:
        """Take an interval through which this program was stopped for one that was lost.

        Nothing was counted meanwhile, so the demand would look small just before its backlog comes.
        """
        if observation is None or observation.interval <= _TRUSTED_INTERVALS * self._options.interval:
            return observation
        log.warning("this program stood still; the interval is not used", length=observation.interval)
        return None

    def _checkpoint_if_due(self, now: float, wall_time: float) -> None:
        if self._journal is None:
            return
        if self._checkpoint_at is None or now - self._checkpoint_at >= CHECKPOINT_INTERVAL:
            self._journal.checkpoint(self._pool, self._controller, now, wall_time)
            self._checkpoint_at = now

    def _remember(self, observation: Observation | None, fleet: Fleet) -> None:
        """Keep slot time in use and slot time there; slots are those between the last tick and this one."""
        slots = fleet.ready * fleet.slots_per_replica
        if observation is not None:
            there = (slots + self._slots_before) / 2
            self._recent.append(
                (observation.busy_slots_mean * observation.interval, there * observation.interval)
            )
            del self._recent[:-_OCCUPANCY_INTERVALS]
        self._slots_before = slots

    async def _ask_fleet(self) -> bool:
        """Ask the platform what there is; whether it answered."""
        try:
            self._fleet = await self._platform.fleet()
        except PlatformUnavailable as error:
            log.warning(
                "platform cannot be asked; the fleet is left as it is", pool=self._pool, error=str(error)
            )
            self._unasked = str(error)
            return False
        self._unasked = None
        return True

    async def _actuate(self, decision: Decision) -> None:
        try:
            await self._platform.scale_to(decision.desired)
            self._asked, self._refused = decision.desired, None
        except PlatformUnavailable as error:
            log.warning("platform refused; asked again next interval", pool=self._pool, error=str(error))
            self._refused = str(error)

    def _start_fit_if_due(self, now: float) -> None:
        if self._fit is not None and not self._fit.done():
            return
        job = self._controller.refit_due(now)
        if job is not None:
            self._fit = asyncio.create_task(self._run_and_adopt(job), name=f"fit {self._pool}")

    async def _run_and_adopt(self, job: Callable[[], Any]) -> None:
        try:
            fitted = await self._run_fit(job, self._options.fit_time_limit)
        except AutoscalerError as error:
            log.warning("no new forecast; the last one goes on", pool=self._pool, error=str(error))
            return
        # Before it is adopted, for the controller teaches it more. A tick may have read the clock already and
        # wait for the platform: so what tells the order is the last step, and not the time of now.
        if self._journal is not None:
            self._journal.adopted(self._pool, fitted, *self._last_step)
        self._controller.adopt(fitted, self._clock.now())
        if fitted.failure:
            log.warning("no forecast from this history", pool=self._pool, error=fitted.failure)


def _is_seen(decision: Decision) -> bool:
    """Whether it says what shall be, and does not just keep what seems to be there.

    The fleet may be seen wrongly just when the demand is not seen either: told to the platform, a number that
    is out of date would change what shall stay.
    """
    return decision.reason is not Reason.METRICS_LOST


def _occupancy(slot_time: Sequence[tuple[float, float]]) -> float:
    """Slot time in use over slot time there [1]."""
    there = sum(each[1] for each in slot_time)
    return sum(each[0] for each in slot_time) / there if there else nan
