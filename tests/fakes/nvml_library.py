"""The driver's library on machines without a GPU: a small C library below the real binding.

The dynamic loader looks for it where LD_LIBRARY_PATH says at the start of a process, so what is tested runs
in a process of its own. It reads the state file anew at each call: replace the file to change a value. The
keys stand at the top of `nvml/fake_nvml.c`.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ABSENT = "no C compiler to build the stand-in for the driver's library with (apt-get install gcc)"
_SOURCE = Path(__file__).parent / "nvml" / "fake_nvml.c"
_ROOT = Path(__file__).parents[2]


def can_be_built() -> bool:
    """Whether there is a compiler."""
    return shutil.which("cc") is not None


class NvmlLibrary:
    """A built library in `folder`, and its state."""

    def __init__(self, folder: Path) -> None:
        self.state = folder / "state.txt"
        self._folder = folder
        library = folder / "libnvidia-ml.so.1"
        subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", str(library), str(_SOURCE)], check=True)

    def says(self, *lines: str) -> None:
        """Answer so from now on; at once for a process that runs."""
        fresh = self.state.with_suffix(".new")
        fresh.write_text("\n".join(lines) + "\n")
        fresh.replace(self.state)

    @property
    def env(self) -> dict[str, str]:
        """The environment of a process that finds the library."""
        mine = {"LD_LIBRARY_PATH": str(self._folder), "FAKE_NVML_FILE": str(self.state)}
        return {**os.environ, **mine, "PYTHONPATH": str(_ROOT)}

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run Python with the library: `run("-m", "autoscaler", "topology")`."""
        return subprocess.run(
            [sys.executable, *words], check=False, env=self.env, capture_output=True, text=True, timeout=60
        )
