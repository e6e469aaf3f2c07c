"""A real Triton server on CPU with models of a test's own (`triton_models`), on free ports of the loopback.

Models are loaded when they are asked for (explicit model control), so that a test waits for those it uses
only. As a program, `python -m tests.fakes.triton_server`, it becomes the server: a platform can start it.
"""

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Self

import pytest

from load.free_port import free_port
from load.triton.install import is_installed
from load.triton.serve import (
    EmulatedAccelerator,
    remove_regions_of_the_dead,
    server_command,
    server_environment,
)

ROOT = Path(__file__).parents[2]
HOME = ROOT / ".triton"
READY_WITHIN = 60.0
"""A quarter of a second on an idle machine [s]."""

needs_triton = pytest.mark.skipif(
    not is_installed(HOME), reason="Triton is not installed; `make triton` does it"
)


def command(repository: Path, port: str = "{port}", grpc_port: str = "{grpc_port}") -> list[str]:
    """The command line of a server; as it stands, for a platform that fills in the ports."""
    places = ["--repository", str(repository), "--port", port, "--grpc-port", grpc_port]
    return [sys.executable, "-m", "tests.fakes.triton_server", *places]


class TritonServer:
    """One server; `load` what it shall serve. Its ports stay the same when it is killed and started again."""

    def __init__(self, repository: Path) -> None:
        self.repository = repository
        self.port, self.grpc_port = free_port(), free_port()
        self.log = repository / "log.txt"
        self._process: subprocess.Popen[bytes] | None = None
        self._loaded: set[str] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def target(self) -> str:
        """Where it takes gRPC."""
        return f"127.0.0.1:{self.grpc_port}"

    def start(self) -> Self:
        """Start it; return when it is ready."""
        self._loaded.clear()
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                command(self.repository, str(self.port), str(self.grpc_port)),
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        deadline = time.monotonic() + READY_WITHIN
        while not self._is_ready():
            if time.monotonic() > deadline or self._process.poll() is not None:
                said = self.log.read_text()[-2000:]
                self.kill()
                raise AssertionError(f"Triton did not start:\n{said}")
            time.sleep(0.02)
        return self

    def load(self, *models: str) -> None:
        """Have it serve `models`, those that it does not serve yet."""
        for model in models:
            if model not in self._loaded:
                self._post(f"/v2/repository/models/{model}/load")
                self._loaded.add(model)

    def unload(self, model: str) -> None:
        """Have it stop serving a model; it returns at once, what is running goes on."""
        self._post(f"/v2/repository/models/{model}/unload")
        self._loaded.discard(model)

    def kill(self) -> None:
        """End it, and the processes of its models, at once."""
        self._signal(signal.SIGKILL)
        if self._process is not None:
            self._process.wait()
        remove_regions_of_the_dead()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.kill()

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)

    def _is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/v2/health/ready", timeout=1):
                return True
        except (urllib.error.URLError, OSError):
            return False

    def _post(self, path: str) -> None:
        request = urllib.request.Request(self.url + path, json.dumps({}).encode(), method="POST")
        with urllib.request.urlopen(request, timeout=READY_WITHIN):
            pass


def main() -> None:
    """Become a server on 127.0.0.1."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--repository", type=Path, required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--grpc-port", type=int, required=True)
    asked = parser.parse_args()
    line = server_command(HOME, asked.port, asked.repository, asked.grpc_port)
    environment = server_environment(HOME, EmulatedAccelerator())
    os.execve(line[0], [*line, "--model-control-mode=explicit"], environment)


if __name__ == "__main__":
    main()
