"""`python -m load send …`: load a server of yours. `python -m load demo`: the main job on this machine."""

import sys


def main() -> None:
    """Run the command line; Ctrl-C ends it quietly, even while its parts are still being imported."""
    try:
        from load.commands import app  # noqa: PLC0415 - so that it can be interrupted

        app(prog_name="python -m load")
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
