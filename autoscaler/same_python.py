"""The Python that runs this program, for processes of its own.

`python -m` looks for modules in the folder at hand first: a `pickle.py` that lies there would be run in place
of Python's. So a process of ours looks there only if this one was told to, as in a checkout of the source.
"""

import os
import sys


def same_python() -> tuple[str, ...]:
    """Return the words that start it, for `-m MODULE` to follow."""
    looks_here = not sys.flags.safe_path and sys.path[:1] == [_folder_at_hand()]
    return (sys.executable,) if looks_here else (sys.executable, "-P")


def _folder_at_hand() -> str | None:
    try:
        return os.getcwd()  # noqa: PTH109 - as Python itself has it in its path
    except FileNotFoundError:
        return None
