"""Scales for `platform: {kind: exec}`: the replicas are processes, one file in a folder for each.

python3 scale_processes.py FOLDER scale N COMMAND…     starts or ends processes; {port} becomes a free port
python3 scale_processes.py FOLDER status               prints where they are, as JSON

Instead of processes, put jobs of a batch system or machines of a cloud here: `sbatch` and `scancel`, or the
command line of your cloud. Idle replicas go first: AUTOSCALER_BUSY says how many slots of each are in use.
"""

import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

folder, verb, *rest = sys.argv[1:]
busy = json.loads(os.environ.get("AUTOSCALER_BUSY", "{}"))


def running() -> list[tuple[str, Path]]:
    """Return URL and file of every process that is alive."""
    alive = []
    for file in sorted(Path(folder).glob("*.pid")):
        with suppress(ProcessLookupError):
            os.kill(int(file.read_text()), 0)
            alive.append((f"http://127.0.0.1:{file.stem}", file))
            continue
        file.unlink()
    return alive


def start(command: list[str]) -> None:
    """Start one more."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [word.replace("{port}", str(port)) for word in command]
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(words, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True)
    Path(folder, f"{port}.pid").write_text(str(process.pid))


if verb == "status":
    print(json.dumps({"ready": [url for url, _ in running()], "starting": 0}))
else:
    Path(folder).mkdir(parents=True, exist_ok=True)
    wanted, command = int(rest[0]), rest[1:]
    there = sorted(running(), key=lambda each: busy.get(each[0], 0), reverse=True)
    for _ in range(wanted - len(there)):
        start(command)
    for _, file in there[wanted:]:
        os.kill(int(file.read_text()), signal.SIGTERM)
        file.unlink()
