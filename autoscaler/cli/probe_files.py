"""Whether the history and the records of local replicas can be written here."""

import os
import tempfile
from pathlib import Path

from autoscaler.cli.findings import Finding, Level
from autoscaler.errors import UsageError
from autoscaler.telemetry.history_lock import HistoryLock
from autoscaler.telemetry.history_reader import HistoryReader


def probe_history(history: Path) -> Finding:
    """Whether it can be written, is a history if it exists, and belongs to no other instance now."""
    if not _exists(history):
        return _probe_place("history", history)
    try:
        if history.stat().st_size:
            HistoryReader(history).close()
        HistoryLock(history.resolve()).release()
    except UsageError as error:
        return Finding(Level.PROBLEM, "history", str(error).removeprefix("history "))
    if not os.access(history, os.W_OK):
        return Finding(Level.PROBLEM, "history", f"{history} cannot be written; change its permissions")
    return Finding(Level.OK, "history", f"{history} goes on")


def probe_folder(subject: str, folder: Path) -> Finding:
    """Whether files can be made in `folder`, or `folder` itself."""
    if not _exists(folder):
        return _probe_place(subject, folder)
    if not folder.is_dir():
        return Finding(Level.PROBLEM, subject, f"{folder} is not a folder; move it away or name another")
    if refusal := _refusal(folder, Path("lock")):
        text = f"{folder} cannot be written ({refusal}); change its permissions or name another"
        return Finding(Level.PROBLEM, subject, text)
    return Finding(Level.OK, subject, f"{folder} can be written")


def _probe_place(subject: str, path: Path) -> Finding:
    """Whether `path`, which does not exist, can be made, with the folders above it."""
    whole = path.resolve()
    nearest = next(parent for parent in whole.parents if _exists(parent))
    if not nearest.is_dir():
        return Finding(Level.PROBLEM, subject, f"{nearest} is not a folder; move it away or name another")
    if refusal := _refusal(nearest, whole.relative_to(nearest)):
        text = f"{path} cannot be made in {nearest} ({refusal}); change that or name another place"
        return Finding(Level.PROBLEM, subject, text)
    return Finding(Level.OK, subject, f"{path} will be made")


def _refusal(folder: Path, name: Path) -> str:
    """Make a file `name` in a passing folder within `folder`; say why that failed, nothing if it did not.

    Permissions do not tell: mounts may be read-only, and some file systems take no files of ours.
    """
    try:
        with tempfile.TemporaryDirectory(prefix=".autoscaler-check-", dir=folder) as passing:
            trial = Path(passing, name)
            trial.parent.mkdir(parents=True, exist_ok=True)
            trial.touch()
    except OSError as error:
        return error.strerror or str(error)
    return ""


def _exists(path: Path) -> bool:
    """Whether it is there, as far as this user may see."""
    try:
        return path.exists()
    except OSError:
        return False
