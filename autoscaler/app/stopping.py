"""How a program is told to end, and how it lets go of its clients then."""

import asyncio
import signal
from collections.abc import Sequence
from typing import Protocol

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
