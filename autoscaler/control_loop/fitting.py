"""Models of a pool's demand, fitted beside its decisions; and the controller, kept for verification."""

import asyncio
from collections.abc import Awaitable, Callable
from math import nan
from typing import Any

import structlog

from autoscaler.errors import AutoscalerError
from autoscaler.ports import Clock, ControllerJournal
from autoscaler.scaling import Controller

log = structlog.get_logger(__name__)

CHECKPOINT_INTERVAL = 86400.0
"""Between two copies of the controller [s]; a decision is re-executed from the copy before it on."""


class Fitting:
    """Has fits run when they are due, one at a time, and has the controller adopt them.

    Parameters
    ----------
    run_fit : callable
        (job, time limit [s]) -> awaitable of the job's result; may raise AutoscalerError.
    time_limit : float
        A fit that takes longer is ended [s].
    journal : ControllerJournal or None
        Given the controller before its first step and once a day, and each fit that it adopts.
    """

    def __init__(
        self,
        pool: str,
        controller: Controller,
        clock: Clock,
        run_fit: Callable[[Callable[[], Any], float], Awaitable[Any]],
        time_limit: float,
        journal: ControllerJournal | None,
    ) -> None:
        self._pool, self._controller, self._clock = pool, controller, clock
        self._run_fit, self._time_limit, self._journal = run_fit, time_limit, journal
        self._checkpoint_at: float | None = None
        self._last_step = (nan, nan)  # now and wall time
        self._fit: asyncio.Task[None] | None = None

    def before_step(self, now: float, wall_time: float) -> None:
        """Keep the controller as it is, if that is due."""
        if self._journal is None:
            return
        if self._checkpoint_at is None or now - self._checkpoint_at >= CHECKPOINT_INTERVAL:
            self._journal.checkpoint(self._pool, self._controller, now, wall_time)
            self._checkpoint_at = now

    def stepped(self, now: float, wall_time: float) -> None:
        """Note the last step, which tells the order of steps and fits."""
        self._last_step = (now, wall_time)

    def start_if_due(self, now: float) -> None:
        """Start a fit, unless one runs."""
        if self._fit is not None and not self._fit.done():
            return
        job = self._controller.refit_due(now)
        if job is not None:
            self._fit = asyncio.create_task(self._run_and_adopt(job), name=f"fit {self._pool}")

    async def stop(self) -> None:
        """End the fit that runs."""
        if self._fit is not None:
            self._fit.cancel()
            await asyncio.gather(self._fit, return_exceptions=True)

    async def _run_and_adopt(self, job: Callable[[], Any]) -> None:
        try:
            fitted = await self._run_fit(job, self._time_limit)
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
