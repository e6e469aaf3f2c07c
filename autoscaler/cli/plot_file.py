"""Where a picture goes: the ending of the file tells what draws it. A file is there whole, or as it was."""

import importlib.util
import os
from collections.abc import Callable
from pathlib import Path

import typer

from autoscaler.errors import UsageError

_LIBRARIES = {".png": "matplotlib", ".html": "plotly"}


def check_plot(plot: Path | None) -> None:
    """Raise UsageError before anything is computed, if the picture could not be drawn."""
    if plot is None:
        return
    check_picture("--plot", plot, tuple(_LIBRARIES))


def check_picture(option: str, path: Path, endings: tuple[str, ...]) -> None:
    """Raise UsageError if the file of `option` has none of these endings, or could not be drawn."""
    library = _LIBRARIES.get(path.suffix.lower())
    if library is None or path.suffix.lower() not in endings:
        raise UsageError(f"{option} {path}: write the name of a file that ends in {' or '.join(endings)}")
    if importlib.util.find_spec(library) is None:
        raise UsageError(
            f"{option} {path}: needs {library}; install it with: pip install 'inference-autoscaler[plot]'"
        )
    if not path.absolute().parent.is_dir():
        raise UsageError(f"{option} {path}: there is no folder {path.parent}; make it first")


def draw(plot: Path, write_png: Callable[[Path], None], write_html: Callable[[Path], None]) -> None:
    """Let the one that fits draw into `plot`, and say so. Raises UsageError if it cannot be written."""
    write_picture("--plot", plot, write_png if plot.suffix.lower() == ".png" else write_html)


def write_picture(option: str, path: Path, write: Callable[[Path], None]) -> None:
    """Let `write` write the whole file, put it in the place of the old one, and say so.

    Raises
    ------
    UsageError
        If it cannot be written. What stood there still does.
    """
    beside = path.with_name(f".{path.stem}.{os.getpid()}{path.suffix}")
    try:
        try:
            write(beside)
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as error:
        raise UsageError(f"{option} {path}: cannot be written: {error.strerror}") from error
    typer.echo(f"{path} written", err=True)
