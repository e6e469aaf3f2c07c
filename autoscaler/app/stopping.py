"""How a program works until it is told to end, and how it lets go of its clients then."""

import asyncio
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any, Protocol

StopSignals = asyncio.Queue[signal.Signals]


class Drains(Protocol):
    """What has clients."""

    async def drain(self) -> None:
        """Let nothing new in; return when nothing is in flight any more."""


def stop_signals() -> StopSignals:
    """Return a queue that every signal to end goes into from now on."""
    signals: StopSignals = asyncio.Queue()
    loop = asyncio.get_running_loop()
    for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(each, signals.put_nowait, each)
    return signals


async def work_until_told(
    work: Coroutine[Any, Any, None],
    stop: StopSignals,
    leave: Callable[[signal.Signals], Awaitable[None]] | None = None,
) -> None:
    """Do `work` until a signal comes, then `leave`, and end the work; or raise what it raises before."""
    working, stopping = asyncio.create_task(work), asyncio.create_task(stop.get())
    await asyncio.wait([working, stopping], return_when=asyncio.FIRST_COMPLETED)
    if stopping.done() and leave is not None:
        await leave(stopping.result())
    working.cancel()
    stopping.cancel()
    ended, _ = await asyncio.gather(working, stopping, return_exceptions=True)
    if isinstance(ended, Exception):
        raise ended


@asynccontextmanager
async def all_at_once() -> AsyncIterator[asyncio.TaskGroup]:
    """Open a group of tasks that all end with the first that fails; its error is raised as it is."""
    try:
        async with asyncio.TaskGroup() as group:
            yield group
    except ExceptionGroup as error:
        raise error.exceptions[0] from error


async def drain_unless_told_again(listeners: Sequence[Drains], stop: StopSignals) -> None:
    """Drain all at the same time; a second signal does not wait for it."""
    draining = asyncio.create_task(_drain(listeners))
    again = asyncio.create_task(stop.get())
    await asyncio.wait([draining, again], return_when=asyncio.FIRST_COMPLETED)
    for task in (draining, again):
        task.cancel()
    await asyncio.gather(draining, again, return_exceptions=True)


async def _drain(listeners: Sequence[Drains]) -> None:
    await asyncio.gather(*(listener.drain() for listener in listeners))
