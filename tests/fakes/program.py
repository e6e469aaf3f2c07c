"""The whole program as a process of its own, on free ports of the loopback, with local replicas."""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import aiohttp
import psutil
import yaml

from load.free_port import free_port

ROOT = Path(__file__).parents[2]
MARK = "PROGRAM_UNDER_TEST"
MODEL_SERVER = [sys.executable, "-m", "load.model_server", "--port", "{port}"]


class Program:
    """`autoscaler run` with one pool named `pool`; keyword arguments are keys of the pool, but for those of
    its platform in `local`."""

    def __init__(
        self,
        folder: Path,
        *,
        service_time: float = 0.05,
        command: list[str] | None = None,
        local: dict[str, Any] | None = None,
        **pool: Any,
    ):
        self.folder = folder
        self.data, self.admin = free_port(), free_port()
        self.process: subprocess.Popen[bytes] | None = None
        self.log_level = "warning"
        self.said = folder / f"said-{self.data}.txt"
        self.config = folder / "config.yaml"
        served = command or [*MODEL_SERVER, "--service-time", str(service_time)]
        own = {"kind": "local", "command": served, "cwd": str(ROOT), "env": {MARK: str(folder)}}
        platform = {**own, **(local or {})}
        objective = {"wait": "1s", "quantile": 0.9}
        settings = {
            "listen": f"127.0.0.1:{self.data}",
            "admin": f"127.0.0.1:{self.admin}",
            "history": str(folder / "history.db"),
            "control_interval": "1s",
            "pools": {"pool": {"objective": objective, **pool, "platform": platform}},
        }
        self.config.write_text(yaml.safe_dump(settings))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.data}"

    def launch(self) -> subprocess.Popen[bytes]:
        """Start the process; what it says on standard error goes to a file."""
        command = [
            sys.executable,
            "-m",
            "autoscaler",
            "run",
            "-c",
            str(self.config),
            "--log-level",
            self.log_level,
        ]
        with self.said.open("wb") as said:
            self.process = subprocess.Popen(command, cwd=ROOT, stderr=said)
        return self.process

    async def start(self, ready: int = 1, timeout: float = 60.0) -> "Program":
        """Start, and wait until `ready` replicas are."""
        self.launch()
        await self.until(lambda pool: pool["replicas"]["ready"] >= ready, timeout)
        return self

    async def until(self, condition, timeout: float = 30.0) -> dict[str, Any]:
        """Wait until `condition` is true of the pool's status, and return that."""
        async with asyncio.timeout(timeout):
            while True:
                assert self.process is not None and self.process.poll() is None, self.complaint()
                with contextlib.suppress(aiohttp.ClientConnectionError, LookupError):
                    status = await self.get("/api/status")
                    if condition(status["pools"][0]):
                        return status["pools"][0]
                await asyncio.sleep(0.05)

    async def get(self, path: str) -> Any:
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"http://127.0.0.1:{self.admin}{path}") as answer,
        ):
            return json.loads(await answer.text())

    def complaint(self) -> str:
        return self.said.read_text()

    def replicas(self) -> list[psutil.Process]:
        """Processes of replicas, by the mark in their environment."""
        return [each for each in psutil.process_iter() if self._is_replica(each)]

    def _is_replica(self, process: psutil.Process) -> bool:
        with contextlib.suppress(psutil.Error):
            return process.environ().get(MARK) == str(self.folder) and process.status() != "zombie"
        return False

    async def end(self, how: signal.Signals | None = signal.SIGTERM, timeout: float = 30.0) -> int:
        """Send a signal (None: wait for it to end by itself), and return the exit code."""
        assert self.process is not None
        if how is not None:
            self.process.send_signal(how)
        async with asyncio.timeout(timeout):
            while (code := self.process.poll()) is None:
                await asyncio.sleep(0.02)
        return code

    def sweep(self) -> None:
        """End what a failed test has left."""
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for each in self.replicas():
            with contextlib.suppress(psutil.Error, ProcessLookupError):
                os.killpg(each.pid, signal.SIGKILL)


async def post(session: aiohttp.ClientSession, url: str) -> int:
    """Post a few bytes; return the status, or 0 if the connection broke."""
    try:
        async with session.post(url, data=b"hello") as answer:
            await answer.read()
            return answer.status
    except aiohttp.ClientError:
        return 0
