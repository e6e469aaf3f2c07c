"""An execution that outlives the client that asked first: its answer is recorded for all who have the key.

It is in flight like every other request: a drain waits for it, and the end of a drain ends it.
"""

import asyncio

from autoscaler.domain import Outcome
from autoscaler.proxy.answers import DEADLINE, DRAINING, Refused
from autoscaler.proxy.call import CallBroke
from autoscaler.proxy.door import Door, Route
from autoscaler.proxy.execution import Execution
from autoscaler.proxy.onward import Onward
from autoscaler.proxy.recording import Recording
from autoscaler.proxy.time_limit import TimeLimit
from autoscaler.telemetry.live_request import LiveRequest


class KeyedExecution:
    """Serves one request into a recording. Owns the body of `onward`."""

    def __init__(self, door: Door, route: Route, onward: Onward, timeout: float | None, tenant: str) -> None:
        self._door = door
        self._onward = onward
        self._timeout = timeout
        self._task: asyncio.Task[object] | None = None
        self.execution = Execution(door, route, onward, timeout, tenant)

    async def record(self, recording: Recording) -> None:
        """Wait for a slot, call a replica, take in its answer; say to the recording how that failed."""
        self._task = asyncio.current_task()
        self._door.enter(self)
        try:
            with self.execution:
                await self._record(recording)
        finally:
            self._door.leave(self)
            self._onward.body.release()

    def live(self, now: float) -> LiveRequest | None:
        """Say nothing: the clients that have joined it say where they stand."""
        return None

    def cut(self) -> None:
        """End it before it is done, because the program ends."""
        self.execution.may_be_cut = True
        if self._task is not None:
            self._task.cancel()

    async def _record(self, recording: Recording) -> None:
        try:
            with TimeLimit(self._timeout):
                await self._serve(recording)
        except Refused as refused:
            recording.fail(refused.refusal)
        except CallBroke as broken:
            recording.fail(self.execution.broke(broken), broken)
        except TimeoutError:
            self.execution.outcome = Outcome.EXPIRED
            recording.fail(self.execution.now_executed(DEADLINE))
        except asyncio.CancelledError:
            if self.execution.may_be_cut:
                recording.fail(self.execution.now_executed(DRAINING))
            raise

    async def _serve(self, recording: Recording) -> None:
        await self.execution.wait_for_slot()
        call = await self.execution.call()
        self._onward.body.release()
        try:
            await recording.record(call, self.execution.read_by(None))
        finally:
            call.end()
