"""Whoever runs the replicas is asked now and then which there are, and is trusted for a while if silent."""

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from autoscaler.errors import PlatformUnavailable
from autoscaler.ports import Clock
from autoscaler.remote_fleet.fleet import RemoteFleet
from autoscaler.remote_fleet.report import FleetReport
from autoscaler.remote_fleet.told_starts import ToldStarts

_UNANSWERED_MAX = 3
"""Nobody can tell the fleet after so many questions in a row without an answer [1]."""

_SOON = 1.0
"""The first question after a change comes so soon [s], the next after twice as long, up to the usual."""

log = structlog.get_logger(__name__)


class Inquiry:
    """The question for one pool.

    Parameters
    ----------
    pool : str
        Name of the pool.
    fleet : RemoteFleet
        Told each answer.
    ask : callable
        Asks once; raises PlatformUnavailable if nobody tells.
    interval : float
        Pause between two questions [s].
    clock : Clock
        The time.
    """

    def __init__(
        self,
        pool: str,
        fleet: RemoteFleet,
        ask: Callable[[], Awaitable[FleetReport]],
        interval: float,
        clock: Clock,
    ) -> None:
        self._pool, self._fleet, self._ask = pool, fleet, ask
        self._interval, self._clock = interval, clock
        self._starts = ToldStarts(fleet.start_timeout)
        self._unanswered = _UNANSWERED_MAX
        self._pause, self._hurried = interval, asyncio.Event()
        self.report: FleetReport | None = None
        """The last answer; None before the first."""
        self.trouble: str | None = None
        """Why the last question has no answer, for a person; None if it has."""

    def __repr__(self) -> str:
        return f"<Inquiry unanswered={self._unanswered} {self.trouble or 'answered'}>"

    def check(self) -> None:
        """Raise PlatformUnavailable if nobody has told for too long which replicas there are."""
        if self._unanswered >= _UNANSWERED_MAX:
            raise PlatformUnavailable(self.trouble or "nobody was asked yet which replicas there are")

    async def look_anew(self) -> None:
        """Ask now. Raises PlatformUnavailable if nobody tells; as in `ports.LooksAnew`."""
        await self.once()
        if self.trouble is not None:
            raise PlatformUnavailable(self.trouble)

    async def once(self) -> None:
        """Ask now."""
        try:
            report = await self._ask()
        except PlatformUnavailable as error:
            self._unanswered += 1
            tell = log.debug if str(error) == self.trouble else log.warning
            tell("fleet is not told; asked again", pool=self._pool, why=str(error))
            self.trouble = str(error)
            return
        self.answered(report)

    async def now_and_then(self) -> None:
        """Ask for ever, after a pause each time."""
        while True:
            try:
                async with asyncio.timeout(self._pause):
                    await self._hurried.wait()
            except TimeoutError:
                self._pause = min(2 * self._pause, self._interval)
                await self.once()
            self._hurried.clear()

    def hurry(self) -> None:
        """Ask sooner than usual for a while: something was asked for that may come about soon."""
        self._pause = min(_SOON, self._interval)
        self._hurried.set()

    def answered(self, report: FleetReport) -> None:
        """Take in an answer, also one that was not asked for."""
        self._unanswered, self.trouble = 0, None
        self.report = self._starts.judge(report, self._clock.now())
        self._fleet.told(self.report)
