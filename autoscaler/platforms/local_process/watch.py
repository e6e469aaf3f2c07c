"""Waits for what a running replica does next: that it gets ready, and that it fails.

Both waits end the moment its leader exits, whatever the probes say. Probes go through the real port.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, NoReturn, TypeVar

from autoscaler.errors import ReplicaFailed
from autoscaler.platforms.local_process.back_off import Silence
from autoscaler.platforms.local_process.options import LocalOptions
from autoscaler.platforms.local_process.replica_process import ReplicaProcess
from autoscaler.ports import Clock, ModelServer

FIRST_PROBE_PAUSE, LAST_PROBE_PAUSE = 0.05, 1.0
"""Between probes of a starting replica [s]: a quick start is measured well, a long one asked seldom."""

Result = TypeVar("Result")


class Watch:
    """The watch over one incarnation.

    Parameters
    ----------
    process : ReplicaProcess
        It has been started, or adopted.
    options, server, clock
        How patient to be, how to ask it, and the time.
    not_yet : callable
        Called after each probe of a starting one that was not answered.
    """

    def __init__(
        self,
        process: ReplicaProcess,
        options: LocalOptions,
        server: ModelServer,
        clock: Clock,
        not_yet: Callable[[], None],
    ) -> None:
        self._process, self._options, self._server, self._clock = process, options, server, clock
        self._not_yet = not_yet

    async def until_ready(self) -> None:
        """Wait for the first answer. Raises ReplicaFailed if it exits, or takes too long."""
        await self._unless_it_exits(self._first_answer())

    async def until_failed(self, busy_slots: Callable[[], int]) -> NoReturn:
        """Wait until a ready one fails. Raises ReplicaFailed once it exits or hangs.

        `busy_slots` tells how many of its slots are in use [1].
        """
        await self._unless_it_exits(self._silence(busy_slots))
        raise ReplicaFailed("runs but answers no probe any more")

    async def _first_answer(self) -> None:
        # One that was ready before has no start ahead of it: it gets the patience of a ready one.
        options, was_ready = self._options, self._process.record.ready_at is not None
        timeout = options.probe_failures * options.probe_interval if was_ready else options.ready_timeout
        deadline, pause = self._clock.now() + timeout, FIRST_PROBE_PAUSE
        while not await self._answers():
            self._not_yet()
            if self._clock.now() >= deadline:
                raise ReplicaFailed(f"did not answer its readiness probe within {timeout:g} s")
            await asyncio.sleep(pause)
            pause = min(1.5 * pause, LAST_PROBE_PAUSE)

    async def _silence(self, busy_slots: Callable[[], int]) -> None:
        options = self._options
        silence = Silence(options.probe_failures, options.hang_timeout, self._clock.now())
        hangs = False
        while not hangs:
            await asyncio.sleep(options.probe_interval)
            hangs = silence.hangs(await self._answers(), busy_slots(), self._clock.now())

    async def _answers(self) -> bool:
        return await self._server.ready(self._process.url)

    async def _unless_it_exits(self, wait: Coroutine[Any, Any, Result]) -> Result:
        waiting, exiting = asyncio.create_task(wait), asyncio.create_task(self._process.exited())
        try:
            await asyncio.wait((waiting, exiting), return_when=asyncio.FIRST_COMPLETED)
            if exiting.done():
                raise ReplicaFailed(exiting.result())
            return waiting.result()
        finally:
            waiting.cancel()
            exiting.cancel()
            await asyncio.gather(waiting, exiting, return_exceptions=True)
