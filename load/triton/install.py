"""Build Triton's environment in a folder, once: packages pinned by hashes, the model's ONNX file, a first
answer.

The last step starts the server and asks it for one embedding, because a Python built without a shared
library, or a C library that is too old, shows only there. Everything that can go wrong ends in one
`InstallationFailed`, whose text is one line.
"""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

from load.free_port import free_port
from load.triton import serve

HERE = Path(__file__).parent
READY_WITHIN = 60.0  # [s]; a second or two on an idle machine


class InstallationFailed(Exception):
    """Triton cannot be had here; the text says why, in one line."""


def is_installed(home: Path, base_python: str | None = None) -> bool:
    """Whether `home` holds a whole environment, built from what is asked for now."""
    stamp = home / "installed"
    if not stamp.is_file() or not (home / "bin" / "python").exists():
        return False
    built_from = stamp.read_text()
    return built_from.startswith(source_digest()) and (
        base_python is None or built_from.endswith(f" {base_python}\n")
    )


def source_digest() -> str:
    """Return a digest of everything that `install` builds from."""
    digest = hashlib.sha256()
    for name in ("requirements.lock", "minilm.py", "install.py"):
        digest.update((HERE / name).read_bytes())
    return digest.hexdigest()


def install(home: Path, base_python: str) -> float:
    """Build the environment from scratch with `base_python`; return the seconds it took.

    Raises
    ------
    InstallationFailed
        Whatever the step that failed.
    """
    began = time.monotonic()
    python = shutil.which(base_python)
    if python is None:
        raise InstallationFailed(f"{base_python}: command not found")
    (home / "installed").unlink(missing_ok=True)
    perform("make the environment", [python, "-m", "venv", "--clear", str(home)])
    pip = [str(home / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    lock = [
        "--no-deps",
        "--only-binary=:all:",
        "--require-hashes",
        "--requirement",
        str(HERE / "requirements.lock"),
    ]
    perform("install packages", pip + lock)
    perform("write the model", [str(home / "bin" / "python"), str(HERE / "minilm.py"), str(home)])
    try:
        prepare_backend(home)
    except (OSError, subprocess.CalledProcessError, ValueError) as error:
        raise InstallationFailed(f"cannot lay out Triton's backend: {error}") from error
    check_that_it_answers(home.resolve())
    (home / "installed").write_text(f"{source_digest()} {base_python}\n")
    return time.monotonic() - began


def prepare_backend(home: Path) -> None:
    """Lay Triton's Python backend out in `home`: its stub must lie beside its library, and be executable."""
    ask = "import sysconfig; print(sysconfig.get_config_var('LIBDIR'), sysconfig.get_python_version())"
    answer = subprocess.run([home / "bin" / "python", "-c", ask], capture_output=True, text=True, check=True)
    library, version = answer.stdout.split()
    backend, server = home / "backends" / "python", serve.package(home) / "tritonserver"
    shutil.rmtree(backend, ignore_errors=True)
    shutil.copytree(server / "backends" / "python", backend)
    stub = backend / "triton_python_backend_stub"
    shutil.copyfile(server / "python_backend_stubs" / version / stub.name, stub)
    stub.chmod(0o755)
    (backend / "libpython").write_text(library + "\n")


def perform(what: str, command: list[str]) -> None:
    """Run one step; its output is shown only by its last line, and only if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        lines = [line for line in (done.stderr + done.stdout).splitlines() if line.strip()]
        errors = (
            [line for line in lines if line.startswith("ERROR")] or lines or [f"exit code {done.returncode}"]
        )
        raise InstallationFailed(f"cannot {what}: {errors[-1].strip()}")


def check_that_it_answers(home: Path) -> None:
    """Start one server, have it embed one text, end it. Raises InstallationFailed with the end of its log."""
    port, log = free_port(), home / "first-start.log"
    command = [sys.executable, "-m", "load.triton", "serve", "--home", str(home), "--port", str(port)]
    with log.open("wb") as sink:
        server = subprocess.Popen(
            command,
            cwd=HERE.parent.parent,
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=sink,
            start_new_session=True,
        )
    try:
        length = len(first_answer(server, port))
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()
        serve.remove_regions_of_the_dead()
    if length != 384:  # MiniLM's dimension
        raise InstallationFailed(f"Triton answers with {length} numbers instead of 384; its log: {log}")
    log.unlink()


def first_answer(server: subprocess.Popen[bytes], port: int) -> list[float]:
    """Return the embedding of one word, as soon as the server gives it."""
    tensor = {"name": "TEXT", "shape": [1, 1], "datatype": "BYTES", "data": ["ready"]}
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/v2/models/embed/infer", json.dumps({"inputs": [tensor]}).encode()
    )
    deadline = time.monotonic() + READY_WITHIN
    while time.monotonic() < deadline and server.poll() is None:
        try:
            with urllib.request.urlopen(request, timeout=READY_WITHIN) as answer:
                numbers: list[float] = json.load(answer)["outputs"][0]["data"]
                return numbers
        except urllib.error.HTTPError as error:
            if error.code != 400:  # 400 is Triton's way to say: not ready yet
                raise InstallationFailed(f"Triton answers {error.code}: {error.read()[:200]!r}") from error
        except OSError:
            pass
        time.sleep(0.05)
    said = "did not become ready" if server.poll() is None else f"ended with {server.poll()}"
    raise InstallationFailed(f"Triton {said}")
