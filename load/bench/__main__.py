"""`python -m load.bench NAME …` runs the benchmark of that name: a file of this folder that has a `main`."""

import importlib
import sys
from pathlib import Path


def names() -> list[str]:
    """Return the benchmarks there are."""
    files = Path(__file__).parent.glob("*.py")
    return sorted(file.stem for file in files if "\ndef main(" in file.read_text(encoding="utf-8"))


if __name__ == "__main__":
    asked = sys.argv[1] if len(sys.argv) > 1 else ""
    if asked not in names():
        sys.exit(f"python -m load.bench: there is no benchmark {asked!r}; there are {', '.join(names())}")
    del sys.argv[1]
    importlib.import_module(f"load.bench.{asked}").main()
