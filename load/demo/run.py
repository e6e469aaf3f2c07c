"""One run of the demo: start the program, send the requests, watch, end it, read what it decided."""

import asyncio
import signal
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from autoscaler.domain import Decision
from autoscaler.telemetry.history_reader import HistoryReader
from load.demo.program import Program, ProgramFailed
from load.demo.report import Report, report
from load.demo.sampler import Sampler
from load.demo.scenario import POOL, ROOT, Scenario
from load.free_port import free_address
from load.generator import Generator
from load.triton.serve import remove_regions_of_the_dead

PREPARED_WITHIN = 60.0  # [s]
REQUEST_TIMEOUT = 60.0  # [s]
DECISIONS_MAX = 100_000  # more than a run of hours


Show = Callable[[str], Coroutine[Any, Any, None]]
"""Shows the program whose admin listener is at a base URL, until cancelled."""


async def run(scenario: Scenario, show: Show) -> Report | None:
    """Run the demo to its end, or until SIGINT or SIGTERM.

    Returns
    -------
    Report or None
        What happened; None if it was interrupted before the first request.

    Raises
    ------
    ProgramFailed
        If the program does not start, or ends before it is told to.
    """
    interrupted = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, interrupted.set)
    try:
        with tempfile.TemporaryDirectory(prefix="autoscaler-demo-") as folder:
            return await _run_in(Path(folder), scenario, show, interrupted)
    finally:
        remove_regions_of_the_dead()


async def _run_in(folder: Path, scenario: Scenario, show: Show, interrupted: asyncio.Event) -> Report | None:
    configuration = scenario.configuration(folder, free_address(), free_address())
    async with Program(configuration, folder, ROOT) as program:
        sampler = Sampler(program.admin)
        async with beside(sampler.run()):
            await first_of(_prepared(program, sampler, scenario), program.ended(), interrupted.wait())
            if interrupted.is_set():
                return None
            generator = Generator(lambda index: scenario.outgoing(program.url, index), REQUEST_TIMEOUT)
            began = time.time()
            sampler.start_recording()
            async with beside(show(program.admin)):
                sending = generator.run(scenario.arrivals())
                await first_of(sending, program.ended(), _stopped(generator, interrupted))
    decisions = decisions_since(program.history, began)
    return report(scenario, generator.records, sampler.samples, decisions, interrupted.is_set())


@asynccontextmanager
async def beside(coroutine: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run a coroutine inside the context; cancel it, and wait for its end, outside."""
    task = asyncio.create_task(coroutine)
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _prepared(program: Program, sampler: Sampler, scenario: Scenario) -> None:
    """Wait until the program takes requests and the least fleet is there."""
    try:
        async with asyncio.timeout(PREPARED_WITHIN):
            await program.ready()
            await sampler.until(lambda pool: pool.replicas.ready >= scenario.replicas_min)
    except TimeoutError:
        raise ProgramFailed(
            f"no {scenario.replicas_min} replicas after {PREPARED_WITHIN:g} s; "
            f"the log of autoscaler ends:\n{program.log_tail()}"
        ) from None


async def _stopped(generator: Generator, interrupted: asyncio.Event) -> None:
    """When interrupted, have the generator end; then wait for ever: the run ends with it."""
    await interrupted.wait()
    generator.stop()
    await asyncio.Event().wait()


async def first_of(*coroutines: Coroutine[Any, Any, Any]) -> None:
    """Run until the first is done, cancel the others; raise what it raised."""
    tasks = [asyncio.create_task(coroutine) for coroutine in coroutines]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in done:
        task.result()


def decisions_since(history: Path, wall_time: float) -> list[Decision]:
    """Return what the program decided from `wall_time` [s since the epoch] on."""
    with HistoryReader(history) as reader:
        records = reader.decisions(POOL, DECISIONS_MAX)
    return [record.decision for record in records if record.wall_time >= wall_time]
