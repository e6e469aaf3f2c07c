"""The subjects of the batching benchmark: servers, and ways to them.

Every way is measured before servers of its own kind: those that merge requests themselves have Triton's
dynamic batcher, the others have none. They are started together and idle while it is not their turn.
"""

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import yaml

from load.bench.proxy_subjects import OTHER_CORE, SUBJECT_CORE, Running, start
from load.demo.scenario import ROOT
from load.free_port import free_port
from load.triton.batch_models import ROWS_MAX, emulated, minilm

HOME = ROOT / ".triton"
_READY_WITHIN = 60.0

_SERVE = """\
import os, sys
from pathlib import Path
from load.triton.serve import EmulatedAccelerator, server_command, server_environment
home, repository, port = Path(sys.argv[1]).resolve(), Path(sys.argv[2]), int(sys.argv[3])
line = server_command(home, port, repository)
os.execve(line[0], line, server_environment(home, EmulatedAccelerator()))
"""


@dataclass(frozen=True)
class Speed:
    """Of one replica: s(n) = alpha + beta n [s]; None for the real model."""

    line: tuple[float, float] | None


@dataclass(frozen=True)
class Way:
    """How clients reach the replicas."""

    name: str
    batcher: bool
    """Whether the servers have Triton's own batcher."""
    slots: int | None
    """Calls at a time through the proxy to one replica; None: straight to the servers, in turns."""
    batching: str = "off"


WAYS = (
    Way("no batching", batcher=False, slots=1),
    Way("Triton's batcher, in turns", batcher=True, slots=None),
    Way("Triton's batcher, through the proxy", batcher=True, slots=2 * ROWS_MAX, batching="auto"),
    Way("ours", batcher=False, slots=1, batching="auto"),
    Way("ours, one batch ahead", batcher=False, slots=2, batching="auto"),
)


class Replicas:
    """Triton servers of one kind, one for each speed."""

    def __init__(self, folder: Path, speeds: Sequence[Speed], *, batcher: bool) -> None:
        self._folder = folder / ("own" if batcher else "none")
        self._speeds = speeds
        self._batcher = batcher
        self._running: list[Running] = []
        self.urls: list[str] = []

    async def start(self) -> None:
        """Start them; return when all are ready."""
        for i, speed in enumerate(self._speeds):
            repository, port = self._folder / str(i), free_port()
            if speed.line is None:
                minilm(repository, batcher=self._batcher)
            else:
                emulated(repository, *speed.line, batcher=self._batcher)
            command = [sys.executable, "-c", _SERVE, str(HOME), str(repository), str(port)]
            self._running.append(await start(command, port, OTHER_CORE, self._folder / f"{i}.log"))
            self.urls.append(f"http://127.0.0.1:{port}")
        for url in self.urls:
            await ready(f"{url}/v2/models/model/ready")

    async def counts(self) -> tuple[int, int]:
        """Return rows and executions so far, of all together."""
        rows = executions = 0
        async with aiohttp.ClientSession() as session:
            for url in self.urls:
                async with session.get(f"{url}/v2/models/model/stats") as answer:
                    [stats] = (await answer.json())["model_stats"]
                    rows += stats["inference_count"]
                    executions += stats["execution_count"]
        return rows, executions

    async def stop(self) -> None:
        """End them."""
        for each in self._running:
            await each.stop()


async def start_proxy(folder: Path, way: Way, urls: Sequence[str]) -> Running:
    """Start the program before some replicas; return when it takes requests."""
    port, admin = free_port(), free_port()
    pool: dict[str, Any] = {
        "slots_per_replica": way.slots,
        "server": {"kind": "triton", "model": "model", "grpc_port": "none", "batching": way.batching},
        "objective": {"wait": "1s"},
        "queue": {"requests_max": 4096},
        "platform": {"kind": "static", "urls": list(urls)},
    }
    settings = {
        "listen": f"127.0.0.1:{port}",
        "admin": f"127.0.0.1:{admin}",
        "history": str(folder / "history.db"),
        "pools": {"bench": pool},
    }
    file = folder / "autoscaler.yaml"
    file.write_text(yaml.safe_dump(settings))
    command = [sys.executable, "-m", "autoscaler", "run", "-c", str(file), "--log-level", "warning"]
    running = await start(command, port, SUBJECT_CORE, folder / "log")
    await ready(f"http://127.0.0.1:{admin}/readyz")
    return running


async def ready(url: str) -> None:
    """Wait until a URL is answered with 2xx."""
    async with asyncio.timeout(_READY_WITHIN), aiohttp.ClientSession() as session:
        while True:
            try:
                async with session.get(url) as answer:
                    if answer.ok:
                        return
            except aiohttp.ClientError:
                pass
            await asyncio.sleep(0.05)
