"""What is measured of one subject: the same, in the same order, for each."""

import asyncio
import tempfile
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np

from load.bench import proxy_client as client
from load.bench.proxy_subjects import PLENTY, SUBJECT_CORE, Running, Subject, start
from load.bench.proxy_upstream import LARGE_BYTES
from load.free_port import free_port

READY_WITHIN = 90.0  # [s]
_TRIES = 2
_SAID = 600
"""So much is shown of what a subject said before it failed [characters]."""

WARM_UP = 1.0  # [s]
CONNECTIONS, LARGE_CONNECTIONS = 64, 4
FIXED_RATE = 500.0  # [1/s]
RATE_MAX = 6000.0
"""The client can ask no faster and be on time [1/s]."""

EVENT_EVERY = 0.2  # [s]
QUEUED = 1000


class NotReady(Exception):
    """A subject did not start to pass on; the text has the end of what it said."""


@dataclass
class Figures:
    """Of one subject. NaN where it was not measured."""

    requests_per_second: float = np.nan
    """As fast as it goes, with 64 connections [1/s]."""
    busy: float = np.nan
    """Of its core meanwhile [1]; well below 1, the client or the server was the limit."""
    cpu_per_request: float = np.nan
    """[s]"""
    p50_at_500: float = np.nan
    p99_at_500: float = np.nan
    p50_at_half: float = np.nan
    p99_at_half: float = np.nan
    """Latency at 500 requests/s, and at half of what it can [s]."""
    bytes_per_second: float = np.nan
    """Of bodies of 1 MB, each way [bytes/s]."""
    cpu_per_event: float = np.nan
    """[s]"""
    event_p50: float = np.nan
    event_p99: float = np.nan
    """How long an event is on its way [s]."""
    memory_per_stream: float = np.nan
    memory_per_queued: float = np.nan
    """[bytes]"""
    bad: float = 0.0
    """Answers that were not 200 [1]."""


def median(many: list[Figures]) -> Figures:
    """Return the medians of several rounds."""
    return Figures(
        **{
            each.name: float(np.median([getattr(figures, each.name) for figures in many]))
            for each in fields(Figures)
        }
    )


async def measure(subject: Subject | None, upstream: int, seconds: float) -> Figures:
    """Measure `subject`, or the way without any.

    Raises
    ------
    NotReady
        If it does not start.
    """
    figures = Figures()
    if subject is None:
        await _latencies(upstream, figures, seconds, half=0.0)
        return figures
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        running = await _started(subject, Path(name), upstream, PLENTY)
        try:
            await client.closed_loop(running.port, client.SMALL_REQUEST, CONNECTIONS, WARM_UP)
            await _small(running, figures, seconds)
            await _latencies(running.port, figures, seconds, half=figures.requests_per_second / 2)
            await _large(running, figures, seconds)
            await _streams(running, subject, figures, seconds)
        finally:
            await running.stop()
        running = await _started(subject, Path(name), upstream, slots=1)
        try:
            await _queued(running, min(QUEUED, subject.streams), figures)
        finally:
            await running.stop()
    return figures


async def _started(subject: Subject, folder: Path, upstream: int, slots: int) -> Running:
    log = folder / "log"
    for _ in range(_TRIES):  # another program may have taken the port that was free a moment ago
        port = free_port()
        running = await start(subject.command(folder, port, upstream, slots), port, SUBJECT_CORE, log)
        with suppress(TimeoutError):
            async with asyncio.timeout(READY_WITHIN):
                while not running.ended:
                    if await _passes_on(port):
                        return running
                    await asyncio.sleep(0.2)
        await running.stop()
    said = log.read_text(errors="replace")[-_SAID:].strip()
    raise NotReady(f"{subject.name} did not start to pass on; the last that it said: {said}")


async def _passes_on(port: int) -> bool:
    answered = asyncio.get_running_loop().create_future()

    def done(connection: client.Connection, status: int) -> None:
        if not answered.done():
            answered.set_result(status)

    try:
        (connection,) = await client.connect(port, 1, done)
    except OSError:
        return False
    connection.ask(client.SMALL_REQUEST)
    try:
        async with asyncio.timeout(5.0):
            return bool(await answered == 200)
    except TimeoutError:
        return False
    finally:
        connection.close()


async def _small(running: Running, figures: Figures, seconds: float) -> None:
    before = running.cpu()
    counts = await client.closed_loop(running.port, client.SMALL_REQUEST, CONNECTIONS, seconds)
    used = running.cpu() - before
    figures.requests_per_second = counts.good / seconds
    figures.busy = used / seconds
    figures.cpu_per_request = used / max(1, counts.good)
    figures.bad += counts.bad


async def _latencies(port: int, figures: Figures, seconds: float, half: float) -> None:
    counts = await client.open_loop(port, client.SMALL_REQUEST, FIXED_RATE, seconds)
    figures.p50_at_500, figures.p99_at_500 = np.quantile(counts.latencies or [np.nan], (0.5, 0.99))
    if half:
        counts = await client.open_loop(port, client.SMALL_REQUEST, min(half, RATE_MAX), seconds)
        figures.p50_at_half, figures.p99_at_half = np.quantile(counts.latencies or [np.nan], (0.5, 0.99))
    figures.bad += counts.bad


async def _large(running: Running, figures: Figures, seconds: float) -> None:
    counts = await client.closed_loop(running.port, client.LARGE_REQUEST, LARGE_CONNECTIONS, seconds)
    figures.bytes_per_second = counts.good * LARGE_BYTES / seconds
    figures.bad += counts.bad


async def _streams(running: Running, subject: Subject, figures: Figures, seconds: float) -> None:
    """Let `subject.streams` run at once; count when all are open."""
    before = running.memory()
    events = int(1000 / EVENT_EVERY)  # more than anybody waits for
    opened = await client.open_streams(running.port, subject.streams, events, EVENT_EVERY)
    await asyncio.sleep(1.0)
    cpu, came = running.cpu(), sum(each.events for each in opened)
    for each in opened:
        each.delays.clear()
    await asyncio.sleep(seconds)
    used, came = running.cpu() - cpu, sum(each.events for each in opened) - came
    figures.memory_per_stream = (running.memory() - before) / subject.streams
    figures.cpu_per_event = used / max(1, came)
    delays = [delay for each in opened for delay in each.delays]
    figures.event_p50, figures.event_p99 = np.quantile(delays or [np.nan], (0.5, 0.99))
    for each in opened:
        each.close()
    await asyncio.sleep(0.5)


async def _queued(running: Running, count: int, figures: Figures) -> None:
    """Let `count` requests wait: in our queue, or, where there is none, for the server."""
    await client.closed_loop(running.port, client.SMALL_REQUEST, CONNECTIONS, WARM_UP)
    before = running.memory()
    opened = await client.connect(running.port, count, lambda connection, status: None)
    for each in opened:
        each.ask(client.HELD_REQUEST)
        await asyncio.sleep(0.001)
    await asyncio.sleep(1.0)
    figures.memory_per_queued = (running.memory() - before) / count
    for each in opened:
        each.close()
