"""A real Prometheus on loopback, filled with samples of the past; and a scripted stand-in for its errors.

The real one is installed with `apt-get install prometheus` (Debian: it brings promtool along).
"""

import json
import shutil
import subprocess
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from urllib.request import urlopen

from aiohttp import web

from load.free_port import free_address

ABSENT = "Prometheus is not installed (apt-get install prometheus)"
_STARTS_WITHIN = 30.0

Line = tuple[str, float, float]
"""Name with labels, time [s since the epoch], value."""


def installed() -> bool:
    """Whether there is a Prometheus to test against."""
    return all(shutil.which(program) for program in ("prometheus", "promtool"))


@contextmanager
def running(folder: Path, family: str, kind: str, lines: Iterable[Line]) -> Iterator[str]:
    """Run a Prometheus that holds `lines` of one family; yields its URL."""
    backfill = folder / "samples.om"
    samples = "".join(f"{name} {value:.17g} {at:.3f}\n" for name, at, value in lines)
    backfill.write_text(f"# TYPE {family} {kind}\n{samples}# EOF\n")
    fill = ["promtool", "tsdb", "create-blocks-from", "openmetrics", "-q", "--max-block-duration=128h"]
    subprocess.run([*fill, str(backfill), str(folder / "data")], check=True, capture_output=True, timeout=60)
    with _serving(folder, "global: {}\n") as url:
        yield url


@contextmanager
def scraping(folder: Path, targets: Sequence[str], rules: Path, every: str = "1s") -> Iterator[str]:
    """Run a Prometheus that scrapes `targets` (host:port) and evaluates `rules`; yields its URL."""
    config = {
        "global": {"scrape_interval": every, "evaluation_interval": every},
        "rule_files": [str(rules)],
        "scrape_configs": [
            {"job_name": "inference-autoscaler", "static_configs": [{"targets": list(targets)}]}
        ],
    }
    with _serving(folder, json.dumps(config)) as url:  # JSON is YAML
        yield url


@contextmanager
def _serving(folder: Path, config: str) -> Iterator[str]:
    """Run a Prometheus on the data in `folder`; yields its URL."""
    (folder / "prometheus.yml").write_text(config)
    address = free_address()
    options = {
        "config.file": folder / "prometheus.yml",
        "storage.tsdb.path": folder / "data",
        "storage.tsdb.retention.time": "100y",
        "web.listen-address": address,
        "log.level": "error",
    }
    server = subprocess.Popen(["prometheus", *(f"--{name}={value}" for name, value in options.items())])
    try:
        _wait_until_ready(f"http://{address}", server)
        yield f"http://{address}"
    finally:
        server.kill()
        server.wait()


def _wait_until_ready(url: str, server: subprocess.Popen) -> None:
    give_up = time.monotonic() + _STARTS_WITHIN
    while time.monotonic() < give_up and server.poll() is None:
        try:
            with urlopen(f"{url}/-/ready", timeout=1):
                return
        except OSError:
            time.sleep(0.05)
    raise RuntimeError(f"Prometheus did not get ready at {url}")


Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def scripted(answer: Answer) -> AsyncIterator[str]:
    """Serve whatever `answer` says under every path; yields the URL."""
    app = web.Application()
    app.router.add_get("/{path:.*}", answer)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def matrix(*lines: tuple[dict[str, str], list[tuple[float, float]]], **more: object) -> web.Response:
    """Answer as Prometheus does, with series of (time, value)."""
    result = [
        {"metric": labels, "values": [[time, str(value)] for time, value in values]}
        for labels, values in lines
    ]
    return web.json_response(
        {"status": "success", "data": {"resultType": "matrix", "result": result}, **more}
    )
