"""`python -m autoscaler` and the command `autoscaler`."""

import sys

from autoscaler.first_process import end_when_told

_INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it."""


def main() -> None:
    """Run the command line; Ctrl-C ends it quietly, even while its parts are still being imported."""
    end_when_told()
    try:
        from autoscaler.cli import main as command_line  # noqa: PLC0415 - so that it can be interrupted

        command_line()
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)


if __name__ == "__main__":
    main()
