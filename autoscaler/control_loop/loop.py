"""The driver of the control path: every interval, observe, ask the controller, tell the platform.

It is the only part of the control path that waits. What fails outside (the platform cannot be asked, a
fit breaks) is said, and the loop goes on: the fleet then stays as it is, which is the safe side.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from math import inf, nan
from typing import Any

import structlog

from autoscaler.control_loop.actuation import Actuation
from autoscaler.control_loop.fitting import Fitting
from autoscaler.decision_news import DecisionNews
from autoscaler.domain import Decision, Fleet, Observation, ScaleTo
from autoscaler.ports import Clock, ControllerJournal, DecisionLog, Leadership, Platform
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
        self._actuation = Actuation(pool, platform, wanted=options.actuate, leadership=leadership)
        self._fitting = Fitting(pool, controller, clock, run_fit, options.fit_time_limit, journal)
        self._observe = observe
        self._logs = tuple(logs)
        self._clock = clock
        self._options = options
        self._follow = follow
        self._desired: int | None = None
        self._news = DecisionNews(pool)
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
            await self._fitting.stop()

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
        longest = _LEAD_LOOK if self._actuation.can_come_to_lead else inf
        while True:
            if await self._is_woken(within=min(due - self._clock.now(), longest)):
                return True
            if due <= self._clock.now():
                return False
            await self._actuation.take_the_lead()

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

    async def tick(self) -> None:
        """One interval: observe, decide, actuate; and start a fit if one is due."""
        now, wall_time = self._clock.now(), self._clock.wall_time()
        observation = self._trusted(self._observe(now, wall_time))
        is_seen = await self._actuation.look()
        if self._actuation.fleet is None:
            return
        fleet = self._actuation.as_asked(self._actuation.fleet, is_seen=is_seen)
        self._fitting.before_step(now, wall_time)
        decision = self._controller.step(observation, fleet, now)
        if self._follow is not None:
            decision = self._follow(observation, fleet, decision, now)
        self._fitting.stepped(now, wall_time)
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
        if isinstance(decision, ScaleTo) and decision.desired != self._desired:
            becomes = self._actuation.what_becomes_of_it
            log.info(becomes, pool=self._pool, desired=decision.desired, why=str(decision))
        self._desired = decision.desired
        self._news.follow(decision)
        await self._actuation.carry_out(decision, is_seen=is_seen)
        self._fitting.start_if_due(now)

    @property
    def trouble(self) -> str | None:
        """Why the platform could not be asked last, or refused, for a person; None if it did neither."""
        return self._actuation.trouble

    @property
    def acts(self) -> bool:
        """Whether what is decided is carried out, and from here."""
        return self._actuation.acts

    def _trusted(self, observation: Observation | None) -> Observation | None:
        """Take an interval through which this program was stopped for one that was lost.

        Nothing was counted meanwhile, so the demand would look small just before its backlog comes.
        """
        if observation is None or observation.interval <= _TRUSTED_INTERVALS * self._options.interval:
            return observation
        log.warning("this program stood still; the interval is not used", length=observation.interval)
        return None

    def _remember(self, observation: Observation | None, fleet: Fleet) -> None:
        """Keep slot time in use and slot time there; slots are those between the last tick and this one."""
        slots = fleet.ready * fleet.slots_per_replica
        if observation is not None:
            there = max((slots + self._slots_before) / 2, observation.busy_slots_mean)
            self._recent.append(
                (observation.busy_slots_mean * observation.interval, there * observation.interval)
            )
            del self._recent[:-_OCCUPANCY_INTERVALS]
        self._slots_before = slots


def _occupancy(slot_time: Sequence[tuple[float, float]]) -> float:
    """Slot time in use over slot time there [1]."""
    there = sum(each[1] for each in slot_time)
    return sum(each[0] for each in slot_time) / there if there else nan
