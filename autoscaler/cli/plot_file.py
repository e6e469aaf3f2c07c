"""Where a picture goes: the ending of the file tells what draws it."""

import importlib.util
from collections.abc import Callable
from pathlib import Path

import typer

from autoscaler.errors import UsageError

_LIBRARIES = {".png": "matplotlib", ".html": "plotly"}


def check_plot(plot: Path | None) -> None:
    """Raise UsageError before anything is computed, if the picture could not be drawn."""
    if plot is None:
        return
    library = _LIBRARIES.get(plot.suffix.lower())
    if library is None:
        raise UsageError(f"--plot {plot}: a file that ends in {' or '.join(_LIBRARIES)}")
    if importlib.util.find_spec(library) is None:
        raise UsageError(
            f"--plot {plot}: needs {library}; install it with: pip install 'inference-autoscaler[plot]'"
        )


def draw(plot: Path, write_png: Callable[[Path], None], write_html: Callable[[Path], None]) -> None:
    """Let the one that fits draw into `plot`, and say so. Raises UsageError if it cannot be written."""
    write = write_png if plot.suffix.lower() == ".png" else write_html
    try:
        write(plot)
    except OSError as error:
        raise UsageError(f"--plot {plot}: cannot be written: {error.strerror}") from error
    typer.echo(f"{plot} written", err=True)
