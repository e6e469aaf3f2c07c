"""The process that a sidecar becomes: it takes over its options, and runs (see `cli.sidecar`)."""

import os
import pickle
import sys

from autoscaler.app.sidecar import run
from autoscaler.cli.log_output import configure_logs
from autoscaler.errors import UsageError


def main(descriptor: int, log_level: str) -> None:
    """Run with the options that were left in the open file `descriptor`."""
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
