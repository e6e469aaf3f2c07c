"""What batching gains, beside none and Triton's own batcher in one run: `python -m load.bench batching`.

Closed loops of clients, more and more of them: each way has its throughput and the 99th percentile of its
response times at every number of clients. At equal percentiles the throughputs are compared, interpolated
between the numbers of clients. All ways are measured in turn, several rounds, and the median counts.
"""

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count, pairwise
from pathlib import Path
from statistics import median

import aiohttp
import numpy as np
import uvloop
from rich import box
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from load.bench.batching_subjects import HOME, WAYS, Replicas, Speed, start_proxy
from load.bench.proxy_subjects import OTHER_CORE, Running
from load.demo.scenario import SENTENCES
from load.triton.install import is_installed

EMULATED = Speed((0.020, 0.002))
SLOWER = Speed((0.040, 0.004))
"""Half as fast."""

CASES: dict[str, tuple[str, list[Speed]]] = {
    "equal": ("two equal replicas, s(n) = 20 + 2 n ms", [EMULATED, EMULATED]),
    "uneven": ("two uneven replicas, 20 + 2 n and 40 + 4 n ms", [EMULATED, SLOWER]),
    "minilm": ("MiniLM embeddings on one CPU", [Speed(None)]),
}

CLIENTS = (1, 16, 48, 96, 160)

IN_TURNS = ("no batching", "ours", "ours, one batch ahead")
"""Those that are compared while they are idle."""


@dataclass(frozen=True)
class Point:
    """One way at one number of clients."""

    throughput: float
    p50: float
    p99: float
    rows_per_call: float
    cpu_per_request: float
    """Of the proxy [s]; 0 without one."""
    failed: int


def body(speeds: Sequence[Speed], number: int) -> bytes:
    """Return the body of one request, of one row."""
    if speeds[0].line is None:
        text = SENTENCES[number % len(SENTENCES)]
        one = {"name": "TEXT", "shape": [1, 1], "datatype": "BYTES", "data": [text]}
    else:
        one = {"name": "X", "shape": [1, 4], "datatype": "FP32", "data": [float(number), 1.5, 2.5, 3.5]}
    return json.dumps({"inputs": [one]}).encode()


async def closed_loop(
    urls: Sequence[str], bodies: Sequence[bytes], clients: int, seconds: float
) -> tuple[list[float], int]:
    """Let `clients` ask all the time, in turns over `urls`; return response times [s], and the failed."""
    times: list[float] = []
    failed = 0
    turns = count()
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        began = time.perf_counter()
        counts_from, ends = began + 0.25 * seconds, began + 1.25 * seconds

        async def client() -> None:
            nonlocal failed
            while (sent := time.perf_counter()) < ends:
                turn = next(turns)
                data = bodies[turn % len(bodies)]
                async with session.post(
                    urls[turn % len(urls)] + "/v2/models/model/infer", data=data
                ) as answer:
                    await answer.read()
                    failed += answer.status != 200
                if sent >= counts_from:
                    times.append(time.perf_counter() - sent)

        await asyncio.gather(*(client() for _ in range(clients)))
    return times, failed


async def measure(
    replicas: Replicas, proxy: Running | None, bodies: Sequence[bytes], clients: int, seconds: float
) -> Point:
    """Measure one way at one number of clients."""
    urls = replicas.urls if proxy is None else [f"http://127.0.0.1:{proxy.port}"]
    cpu, (rows, calls) = 0.0 if proxy is None else proxy.cpu(), await replicas.counts()
    times, failed = await closed_loop(urls, bodies, clients, seconds)
    rows_after, calls_after = await replicas.counts()
    p50, p99 = np.quantile(times, [0.5, 0.99])
    used = 0.0 if proxy is None else proxy.cpu() - cpu
    done = rows_after - rows
    return Point(
        len(times) / seconds, p50, p99, done / max(1, calls_after - calls), used / max(1, done), failed
    )


async def idle_times(urls: Sequence[str], bodies: Sequence[bytes], requests: int) -> list[float]:
    """Ask one way after the other, one request at a time; return the median response time of each [s]."""
    times: list[list[float]] = [[] for _ in urls]
    async with aiohttp.ClientSession() as session:
        for number in range(requests):
            for url, own in zip(urls, times, strict=True):
                sent = time.perf_counter()
                data = bodies[number % len(bodies)]
                async with session.post(f"{url}/v2/models/model/infer", data=data) as answer:
                    await answer.read()
                own.append(time.perf_counter() - sent)
    return [median(own) for own in times]


Found = dict[str, list[Point]]


async def run(
    speeds: list[Speed], rounds: int, seconds: float, console: Console
) -> tuple[Found, list[float]]:
    """Measure every way at every number of clients; return the medians, and those of idle ways in turns."""
    os.sched_setaffinity(0, {OTHER_CORE})
    bodies = [body(speeds, number) for number in range(64)]
    found: dict[str, dict[int, list[Point]]] = {way.name: {n: [] for n in CLIENTS} for way in WAYS}
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        kinds = {kind: Replicas(folder, speeds, batcher=kind) for kind in (False, True)}
        proxies: dict[str, Running] = {}
        try:
            for kind in kinds.values():
                await kind.start()
            for i, way in enumerate(WAYS):
                if way.slots is not None:
                    (folder / str(i)).mkdir()
                    proxies[way.name] = await start_proxy(folder / str(i), way, kinds[way.batcher].urls)
            with Progress(console=console, transient=True) as progress:
                bar = progress.add_task("", total=rounds * len(CLIENTS) * len(WAYS))
                for _ in range(rounds):
                    for clients in CLIENTS:
                        for way in WAYS:
                            progress.update(bar, advance=1, description=f"{way.name}, {clients} clients")
                            point = await measure(
                                kinds[way.batcher], proxies.get(way.name), bodies, clients, seconds
                            )
                            found[way.name][clients].append(point)
            turns = [f"http://127.0.0.1:{proxies[name].port}" for name in IN_TURNS]
            idle = await idle_times(turns, bodies, requests=200)
        finally:
            for proxy in proxies.values():
                await proxy.stop()
            for kind in kinds.values():
                await kind.stop()
    return {name: [_median(points) for points in by.values()] for name, by in found.items()}, idle


def _median(points: Sequence[Point]) -> Point:
    return Point(
        median(point.throughput for point in points),
        median(point.p50 for point in points),
        median(point.p99 for point in points),
        median(point.rows_per_call for point in points),
        median(point.cpu_per_request for point in points),
        sum(point.failed for point in points),
    )


def throughput_at(points: Sequence[Point], p99: float) -> float:
    """Return the throughput at which the 99th percentile is `p99` [s], interpolated; the most below it."""
    best = 0.0
    for lower, upper in pairwise(points):
        if upper.p99 <= p99:
            best = max(best, upper.throughput)
        elif lower.p99 <= p99:
            share = (p99 - lower.p99) / (upper.p99 - lower.p99)
            best = max(best, lower.throughput + share * (upper.throughput - lower.throughput))
    return best


def table(found: Found) -> Table:
    """Return what was measured, a line for each way and number of clients."""
    shown = Table(
        "", "clients", "requests/s", "p50", "p99", "rows a call", "proxy, µs CPU", "bad", box=box.SIMPLE
    )
    for name, points in found.items():
        for clients, point in zip(CLIENTS, points, strict=True):
            shown.add_row(
                name if clients == CLIENTS[0] else "",
                str(clients),
                f"{point.throughput:,.0f}",
                f"{point.p50 * 1e3:.1f} ms",
                f"{point.p99 * 1e3:.1f} ms",
                f"{point.rows_per_call:.1f}",
                f"{point.cpu_per_request * 1e6:,.0f}",
                str(point.failed),
            )
    return shown


def ratios(found: Found, idle: Sequence[float]) -> Table:
    """Return how ours stands against the others."""
    peers = [way.name for way in WAYS if way.batcher]
    peer_p99 = found[peers[1]][-2].p99
    alone, through = found["no batching"], found["Triton's batcher, through the proxy"]
    shown = Table("", "ours", "ours, one batch ahead", box=box.SIMPLE)
    mine = [found["ours"], found["ours, one batch ahead"]]
    for peer in peers:
        ways = [throughput_at(own, peer_p99) / throughput_at(found[peer], peer_p99) for own in mine]
        shown.add_row(
            f"throughput at a p99 of {peer_p99 * 1e3:.0f} ms / {peer}", *(f"{ratio:.2f}" for ratio in ways)
        )
        best = max(point.throughput for point in found[peer])
        ways = [max(point.throughput for point in own) / best for own in mine]
        shown.add_row(f"most throughput / {peer}", *(f"{ratio:.2f}" for ratio in ways))
    shown.add_row(
        "idle, one request at a time in turns: median response time / no batching",
        *(f"{own / idle[0]:.3f}" for own in idle[1:]),
    )
    for name, points in (("no batching", alone), ("Triton's batcher, through the proxy", through)):
        shown.add_row(
            f"CPU of the proxy a request, at 96 clients / {name}",
            *(f"{own[3].cpu_per_request / points[3].cpu_per_request:.2f}" for own in mine),
        )
    return shown


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        prog="python -m load.bench batching", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--case", choices=CASES, nargs="+", default=list(CASES))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=4.0, help="of each measurement")
    arguments = parser.parse_args()
    console = Console(width=max(Console().width, 130))
    if not is_installed(HOME):
        console.print("Triton is not installed; `make triton` does it.")
        sys.exit(2)
    for case in arguments.case:
        title, speeds = CASES[case]
        console.print(f"[bold]{title}[/bold]; load of the machine before: {os.getloadavg()[0]:.1f}")
        found, idle = uvloop.run(run(speeds, arguments.rounds, arguments.seconds, console))
        console.print(table(found))
        console.print(ratios(found, idle))


if __name__ == "__main__":
    main()
