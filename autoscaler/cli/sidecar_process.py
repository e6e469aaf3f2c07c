"""The process that a sidecar becomes: it takes over its options, and runs (see `cli.sidecar`)."""

import os
import pickle
import sys

from autoscaler.first_process import end_when_told


def main(descriptor: int, log_level: str) -> None:
    """Run with the options that were left in the open file `descriptor`."""
    end_when_told()
    from autoscaler.app.sidecar import run  # noqa: PLC0415 - so that it can be told to end meanwhile
    from autoscaler.cli.log_output import configure_logs  # noqa: PLC0415
    from autoscaler.errors import UsageError  # noqa: PLC0415

    with os.fdopen(descriptor, "rb") as handed_over:
        options = pickle.load(handed_over)
    configure_logs(log_level)
    try:
        run(options)
    except UsageError as error:
        print(f"autoscaler: {error}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
