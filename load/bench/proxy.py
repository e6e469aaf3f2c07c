"""What the proxy costs, beside a bare pass-through and the peers in one run: `python -m load.bench proxy`.

Each subject has a core to itself; client and model server share the other one. Several rounds, in each all
subjects one after the other, and the median of the rounds counts, so that what else happens on the machine
befalls all alike. Peers that are not installed are left out; see `proxy_subjects`.
"""

import argparse
import asyncio
import os
import sys
import tempfile
from pathlib import Path

import uvloop
from rich import box
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from load.bench.proxy_measure import Figures, NotReady, measure, median
from load.bench.proxy_subjects import OTHER_CORE, SUBJECTS, Subject, start
from load.free_port import free_port

KIB = 1024


async def run(subjects: list[Subject], rounds: int, seconds: float, console: Console) -> dict[str, Figures]:
    """Measure; return the medians by name, and of the direct way under ``direct``."""
    os.sched_setaffinity(0, {OTHER_CORE})
    every: dict[str, list[Figures]] = {}
    failed: set[str] = set()
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        port = free_port()
        command = [sys.executable, "-m", "load.bench.proxy_upstream", "--port", str(port)]
        upstream = await start(command, port, OTHER_CORE, Path(folder) / "log")
        await asyncio.sleep(1.0)
        try:
            with Progress(console=console, transient=True) as progress:
                bar = progress.add_task("", total=rounds * (len(subjects) + 1))
                for _ in range(rounds):
                    for subject in (None, *subjects):
                        name = subject.name if subject else "direct"
                        progress.update(bar, advance=1, description=name)
                        if name in failed:
                            continue
                        try:
                            every.setdefault(name, []).append(await measure(subject, port, seconds))
                        except NotReady as broken:
                            failed.add(name)
                            console.print(str(broken), markup=False)
        finally:
            await upstream.stop()
    return {name: median(figures) for name, figures in every.items() if figures}


def table(found: dict[str, Figures]) -> Table:
    """Return the figures, a line for each subject."""
    direct = found["direct"]
    shown = Table(
        "", "requests/s", "core", "µs/request", "added p50 at 500/s", "p99", "added p50 at half", "p99",
        "MB/s", "µs/event", "event p50", "p99", "KiB/stream", "KiB/queued", "bad",
        box=box.SIMPLE,
    )  # fmt: skip
    for name, each in found.items():
        if name == "direct":
            continue
        shown.add_row(
            name,
            f"{each.requests_per_second:,.0f}",
            f"{each.busy:.0%}",
            f"{each.cpu_per_request * 1e6:,.0f}",
            f"{(each.p50_at_500 - direct.p50_at_500) * 1e3:.2f} ms",
            f"{(each.p99_at_500 - direct.p99_at_500) * 1e3:.2f} ms",
            f"{(each.p50_at_half - direct.p50_at_500) * 1e3:.2f} ms",
            f"{(each.p99_at_half - direct.p99_at_500) * 1e3:.2f} ms",
            f"{each.bytes_per_second / 1e6:,.0f}",
            f"{each.cpu_per_event * 1e6:,.0f}",
            f"{each.event_p50 * 1e3:.2f} ms",
            f"{each.event_p99 * 1e3:.2f} ms",
            f"{each.memory_per_stream / KIB:.1f}",
            f"{each.memory_per_queued / KIB:.1f}",
            f"{each.bad:.0f}",
        )
    return shown


def bars(found: dict[str, Figures], name: str) -> Table:
    """Return how `name` stands against what it must reach."""
    ours, bare, direct = found[name], found["bare aiohttp"], found["direct"]
    added = (ours.p50_at_500 - direct.p50_at_500) / (bare.p50_at_500 - direct.p50_at_500)
    rows = [
        ("CPU per small request / bare", ours.cpu_per_request / bare.cpu_per_request, 1.6, "<="),
        ("CPU per event / bare", ours.cpu_per_event / bare.cpu_per_event, 1.2, "<="),
        ("added p50 at 500/s / bare", added, 1.8, "<="),
        ("MB/s of 1 MB bodies / bare", ours.bytes_per_second / bare.bytes_per_second, 0.9, ">="),
        ("KiB per queued 10 KiB request", ours.memory_per_queued / KIB, 24.0, "<="),
        ("KiB per stream", ours.memory_per_stream / KIB, 24.0, "<="),
    ]
    if (litellm := found.get("LiteLLM")) is not None:
        rows.append(
            ("requests/s / LiteLLM", ours.requests_per_second / litellm.requests_per_second, 50.0, ">=")
        )
    if (router := found.get("sglang-router")) is not None:
        rows.append(
            ("aim: CPU per request / sglang-router", ours.cpu_per_request / router.cpu_per_request, 1.0, "<=")
        )
        rows.append(
            ("aim: CPU per event / sglang-router", ours.cpu_per_event / router.cpu_per_event, 1.0, "<=")
        )
    shown = Table(f"bars for {name}", "measured", "bar", "met", box=box.SIMPLE)
    for text, value, bar, way in rows:
        met = value <= bar if way == "<=" else value >= bar
        shown.add_row(text, f"{value:.2f}", f"{way} {bar:g}", "yes" if met else "NO")
    return shown


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m load.bench proxy", description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3.0, help="of each measurement")
    parser.add_argument("--only", nargs="+", help="subjects by name, beside the bare one")
    arguments = parser.parse_args()
    console = Console(width=max(Console().width, 170))
    if (os.cpu_count() or 1) <= OTHER_CORE:
        console.print("Two cores are needed: one for the subject, one for client and model server.")
        sys.exit(2)
    wanted = [
        each for each in SUBJECTS if not arguments.only or each.name in (*arguments.only, "bare aiohttp")
    ]
    for each in wanted:
        if each.missing:
            console.print(each.missing, markup=False)
    subjects = [each for each in wanted if not each.missing]
    console.print(f"Load of the machine before: {os.getloadavg()[0]:.1f}.")
    found = uvloop.run(run(subjects, arguments.rounds, arguments.seconds, console))
    console.print(f"Load of the machine after: {os.getloadavg()[0]:.1f}, ours included.")
    console.print(table(found))
    for each in subjects:
        if each.name.startswith("ours") and each.name in found:
            console.print(bars(found, each.name))


if __name__ == "__main__":
    main()
