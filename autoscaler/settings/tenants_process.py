"""A process that reads the file of tenants for another one, which has no memory to spare for that.

    python -m autoscaler.settings.tenants_process FILE POOL…

It writes the book of tenants to its output, pickled, and exits with 0; or says what is wrong with the file,
and exits with 2.
"""

import pickle
import sys
from pathlib import Path

from autoscaler.errors import UsageError
from autoscaler.settings.tenants_file import load_tenants

if __name__ == "__main__":
    try:
        book = load_tenants(Path(sys.argv[1]), frozenset(sys.argv[2:]))
    except UsageError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    pickle.dump(book, sys.stdout.buffer)
