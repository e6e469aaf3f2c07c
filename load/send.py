"""`python -m load send URL`: load a server of yours, open loop, and see what it did."""

import asyncio
import dataclasses
import json
import re
import resource
import signal
import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import numpy as np
import typer
import uvloop
from rich import box
from rich.console import Console, Group
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from autoscaler.cli.option_values import DAY, SEED_MAX, a_duration, a_number, a_rate, a_whole_number
from load import arrivals
from load.generator import Generator, Outgoing
from load.summary import Summary, summarize
from load.traces import TraceError, read_arrivals

REQUESTS_MAX = 1_000_000  # of one run; a record of each is kept
INTERRUPTED = 130  # exit code after Ctrl-C, as shells have it
REFRESH = 0.25  # of the progress line [s]
TOKEN = re.compile(r"[\w!#$%&'*+.^`|~-]+", re.ASCII)  # what a method or the name of a header may be: RFC 9110
CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")  # what the value of a header may not have


class Law(StrEnum):
    """How arrivals are spaced."""

    POISSON = "poisson"
    CONSTANT = "constant"


def send(
    url: Annotated[str, typer.Argument(help="Where to send, e.g. http://127.0.0.1:8080/v1/embeddings.")],
    rate: Annotated[
        float | None,
        typer.Option(
            parser=a_rate(1e-6, 1e6), metavar="RATE", help="Requests in a time, e.g. 5/s or 90/min. [1/s]"
        ),
    ] = None,
    duration: Annotated[
        float | None,
        typer.Option(
            "--for",
            parser=a_duration(1e-3, 28 * DAY),
            metavar="TIME",
            help="How long to send, e.g. 30s. [30s]",
        ),
    ] = None,
    law: Annotated[Law, typer.Option(help="Spacing: random and independent, or even.")] = Law.POISSON,
    trace: Annotated[
        Path | None,
        typer.Option(help="Send at the times of this trace (CSV, may be gzip) instead of --rate."),
    ] = None,
    speed: Annotated[
        float,
        typer.Option(parser=a_number(1e-9, 1e9), metavar="N", help="Replay the trace so many times as fast."),
    ] = 1.0,
    method: Annotated[str | None, typer.Option(help="GET, POST, … [POST with a body, else GET]")] = None,
    body: Annotated[
        str | None, typer.Option(help="Body as text, or @FILE, or @- for standard input.")
    ] = None,
    header: Annotated[
        list[str] | None,
        typer.Option(help="'Name: value', may be repeated. A body is application/json by default."),
    ] = None,
    timeout: Annotated[
        float,
        typer.Option(parser=a_duration(1e-3, DAY), metavar="TIME", help="When to give a request up."),
    ] = "60s",  # type: ignore[assignment]  # typer parses defaults too
    seed: Annotated[
        int | None,
        typer.Option(
            parser=a_whole_number(0, SEED_MAX), metavar="N", help="Makes the arrivals the same every time."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
) -> None:
    """Send requests to a server of yours at times fixed beforehand, and tell what it did.

    Latency counts from the moment a request was meant to be sent, so that a server which stalls cannot hide
    it. Ctrl-C ends the run and prints what there is. Exit code 1 if any request failed.

    \b
    python -m load send http://127.0.0.1:8080/infer --rate 5/s --for 1m --body '{"text": "hello"}'
    python -m load send http://127.0.0.1:8080/infer --trace day.csv.gz --speed 60 --body @request.json
    """
    if trace is not None and rate is not None:
        raise typer.BadParameter("--rate and --trace exclude each other; --speed makes a trace faster.")
    outgoing = _outgoing(url, method, body, header or [])
    times = _arrival_times(rate, duration, law, trace, speed, np.random.default_rng(seed))
    generator = Generator(lambda index: outgoing, timeout)
    _allow_many_connections()
    console = Console(stderr=True)
    stopped = uvloop.run(_run(generator, times, console))
    summary = summarize(generator.records)
    if as_json:
        json.dump(dataclasses.asdict(summary), sys.stdout, indent=2)
        print()
    else:
        Console().print(summary_table(summary))
    raise typer.Exit(INTERRUPTED if stopped else 1 if summary.failures else 0)


def _outgoing(url: str, method: str | None, body: str | None, header: Sequence[str]) -> Outgoing:
    if not _is_address(url):
        raise typer.BadParameter(
            f"{url!r}: write an address such as http://127.0.0.1:8080/path.", param_hint="URL"
        )
    headers = {}
    for line in header:
        name, colon, value = line.partition(":")
        if not colon or not TOKEN.fullmatch(name.strip()) or CONTROL.search(value.strip()):
            raise typer.BadParameter(
                f"{line!r}: write 'Name: value', in one line, no spaces in the name.", param_hint="--header"
            )
        headers[name.strip()] = value.strip()
    if method is not None and not TOKEN.fullmatch(method):
        raise typer.BadParameter(f"{method!r}: write one word such as GET or POST.", param_hint="--method")
    content = _body(body)
    if content is not None and "content-type" not in {name.lower() for name in headers}:
        headers["Content-Type"] = "application/json"
    return Outgoing(url, (method or ("GET" if content is None else "POST")).upper(), headers, content)


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # no IPv6 address in the brackets, or no port after the colon
        return False


def _body(given: str | None) -> bytes | None:
    if given is None or not given.startswith("@"):
        return None if given is None else given.encode()
    try:
        return sys.stdin.buffer.read() if given == "@-" else Path(given[1:]).read_bytes()
    except OSError as error:
        raise typer.BadParameter(f"{given[1:]}: {error.strerror}.", param_hint="--body") from error


def _arrival_times(
    rate: float | None,
    duration: float | None,
    law: Law,
    trace: Path | None,
    speed: float,
    rng: np.random.Generator,
) -> np.ndarray:
    if trace is None:
        rate, duration = 1.0 if rate is None else rate, 30.0 if duration is None else duration
        if rate * duration > REQUESTS_MAX:
            raise typer.BadParameter(f"{rate:g}/s for {duration:g} s are more than {REQUESTS_MAX} requests.")
        return (
            arrivals.constant(rate, duration)
            if law is Law.CONSTANT
            else arrivals.poisson(rate, duration, rng)
        )
    try:
        times = arrivals.faster(read_arrivals(trace, rng), speed)
    except TraceError as error:
        raise typer.BadParameter(f"{error}.", param_hint="--trace") from error
    times = times if duration is None else times[times < duration]
    if times.size > REQUESTS_MAX:
        raise typer.BadParameter(
            f"{times.size} requests are more than {REQUESTS_MAX}; shorten it with --for."
        )
    return times


async def _run(generator: Generator, times: np.ndarray, console: Console) -> bool:
    """Send, showing progress; return whether Ctrl-C ended it."""
    interrupted = asyncio.Event()

    def interrupt() -> None:
        interrupted.set()
        generator.stop()

    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, interrupt)
    columns = [TextColumn("sent"), BarColumn(), TextColumn("{task.description}"), TimeElapsedColumn()]
    with Progress(*columns, console=console, transient=True, auto_refresh=False) as progress:
        bar = progress.add_task("", total=len(times))
        run = asyncio.create_task(generator.run(times))
        while not run.done():
            await asyncio.wait({run}, timeout=REFRESH)
            sent, failed = len(generator.records), sum(record.failed for record in generator.records)
            in_flight = len(generator.in_flight)
            described = f"{sent} of {len(times)}, {in_flight} in flight, {failed} failed"
            progress.update(bar, completed=sent, description=described, refresh=True)
        await run
    return interrupted.is_set()


def _allow_many_connections() -> None:
    """An open loop has as many connections as the server leaves unanswered: take what the system allows."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def summary_table(summary: Summary) -> Group:
    """Return the figures for people."""
    counts = Table(show_header=False, box=None)
    counts.add_row("requests", f"{summary.requests} in {summary.seconds:.1f} s")
    counts.add_row("good answers", f"{summary.completed_per_second:.2f}/s")
    counts.add_row("failures", f"{summary.failures}  {in_words(summary.errors)}")
    counts.add_row("by status", in_words(summary.statuses))
    if summary.unfinished:
        counts.add_row("cut off by the end", str(summary.unfinished))
    times = Table("", "mean", "p50", "p95", "p99", "max", box=box.SIMPLE_HEAD)
    for name, spread in (
        ("latency", summary.latency),
        ("first byte", summary.first_byte),
        ("wait in queue", summary.wait),
        ("service", summary.service),
        ("sent too late", summary.lateness),
    ):
        values = (spread.mean, spread.p50, spread.p95, spread.p99, spread.max)
        if spread.mean is not None:
            times.add_row(name, *(for_people(value) for value in values))
    return Group(counts, times)


def in_words(counts: dict[str, int]) -> str:
    """Return counts for people: `3 × 200, 1 × 503`."""
    return ", ".join(f"{count} × {name}" for name, count in counts.items())


def for_people(value: float | None) -> str:
    """Return a time in the unit that people would choose."""
    if value is None:
        return "–"
    return f"{value * 1000:.1f} ms" if value < 1 else f"{value:.2f} s"
