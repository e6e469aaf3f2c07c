"""What a process must do for itself where it is the first one of a container.

The kernel delivers no signal to process 1 that this has no handler for, so SIGTERM would be lost until the
program handles it, which takes the time of all imports; the container would then live for its whole grace.
"""

import os
import signal
import sys
from types import FrameType

_SIGNALS = (signal.SIGTERM, signal.SIGHUP)  # Python itself handles Ctrl-C


def end_when_told() -> None:
    """End at a signal as any other process does, until the program has its own way to."""
    if os.getpid() == 1:
        for each in _SIGNALS:
            signal.signal(each, _end)


def _end(number: int, frame: FrameType | None) -> None:
    sys.exit(128 + number)
