"""Whether the history and the records of local replicas can be written here."""

import os
from pathlib import Path

from autoscaler.cli.findings import Finding, Level
from autoscaler.errors import UsageError
from autoscaler.telemetry.history_lock import HistoryLock
from autoscaler.telemetry.history_reader import HistoryReader


def probe_history(history: Path) -> Finding:
    """Whether it can be written, is a history if it exists, and belongs to no other instance now."""
    if not history.exists():
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
    if folder.is_dir():
        if os.access(folder, os.W_OK | os.X_OK):
            return Finding(Level.OK, subject, f"{folder} can be written")
        return Finding(Level.PROBLEM, subject, f"{folder} cannot be written; change its permissions")
    if folder.exists():
        return Finding(Level.PROBLEM, subject, f"{folder} is not a folder; move it away or name another")
    return _probe_place(subject, folder)


def _probe_place(subject: str, path: Path) -> Finding:
    """Whether `path`, which does not exist, can be made, with the folders above it."""
    nearest = next(parent for parent in path.resolve().parents if parent.exists())
    if not nearest.is_dir():
        return Finding(Level.PROBLEM, subject, f"{nearest} is not a folder; move it away or name another")
    if not os.access(nearest, os.W_OK | os.X_OK):
        text = f"{path} cannot be made, for {nearest} cannot be written; change that or name another place"
        return Finding(Level.PROBLEM, subject, text)
    return Finding(Level.OK, subject, f"{path} will be made")
