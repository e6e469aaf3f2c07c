"""`autoscaler sidecar` or `autoscaler controller` as a process of its own, on free ports of the loopback."""

import asyncio
import contextlib
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import aiohttp
import yaml

from load.free_port import free_port
from tests.fakes.program import ROOT


class CommandProcess:
    """One command with its file; `data` and `admin` are its ports."""

    def __init__(self, folder: Path, command: str, name: str, **settings: Any):
        self.data, self.admin = free_port(), free_port()
        self.config, self.said = folder / f"{name}.yaml", folder / f"{name}.txt"
        listen = {"listen": f"127.0.0.1:{self.data}"} if command == "sidecar" else {}
        given = {
            "admin": f"127.0.0.1:{self.admin}",
            "history": str(folder / f"{name}.db"),
            **listen,
            **settings,
        }
        self.config.write_text(yaml.safe_dump(given))
        self._command = [sys.executable, "-m", "autoscaler", command, "-c", str(self.config)]
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.data}"

    @property
    def admin_url(self) -> str:
        return f"http://127.0.0.1:{self.admin}"

    def launch(self) -> "CommandProcess":
        """Start it; what it says goes to a file, after what it said before."""
        with self.said.open("ab") as said:
            self.process = subprocess.Popen(self._command, cwd=ROOT, stderr=said)
        return self

    async def get(self, path: str) -> Any:
        async with aiohttp.ClientSession() as session, session.get(self.admin_url + path) as answer:
            return json.loads(await answer.text())

    async def ready(self, timeout: float = 30.0) -> "CommandProcess":
        """Wait until it says so."""
        async with asyncio.timeout(timeout):
            while True:
                assert self.process is not None and self.process.poll() is None, self.said.read_text()
                with contextlib.suppress(aiohttp.ClientError, OSError):
                    if (await self.get("/readyz"))["ready"]:
                        return self
                await asyncio.sleep(0.05)

    async def end(self, how: signal.Signals = signal.SIGTERM, timeout: float = 15.0) -> int:
        """Send a signal, and return the exit code."""
        assert self.process is not None
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
