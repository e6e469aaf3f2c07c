"""`autoscaler sidecar`: the data plane beside one server.

The settings of the whole program, with all that they can name, take more memory to read than a sidecar takes
to run. So this process reads and checks them, leaves the few options of a sidecar in an open file, and then
becomes one that has imported nothing else: same process id, fresh memory.
"""

import os
import pickle
import sys
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

from autoscaler.same_python import same_python
from autoscaler.settings import load


def become_sidecar(config: Path, log_level: str) -> None:
    """Serve until SIGTERM or Ctrl-C, then drain. Raises SettingsError if the file is wrong."""
    settings = load(config, command="sidecar")
    from autoscaler.app.sidecar_settings import sidecar_options  # noqa: PLC0415 - a wrong file is answered first

    with _open_nowhere() as handed_over:
        pickle.dump(sidecar_options(settings), handed_over)
        handed_over.seek(0)
        os.set_inheritable(handed_over.fileno(), True)
        process = [*same_python(), "-m", "autoscaler.cli.sidecar_process"]
        os.execv(sys.executable, [*process, str(handed_over.fileno()), log_level])


def _open_nowhere() -> IO[bytes]:
    """Open a file that no folder has; in memory where that can be, for a disk may be read-only."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("sidecar options"), "w+b")
    return TemporaryFile()
