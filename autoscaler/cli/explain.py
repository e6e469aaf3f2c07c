"""`autoscaler explain`: the last decisions, from the running program or from its history file."""

import json
from dataclasses import dataclass
from pathlib import Path

import typer

from autoscaler.cli.admin_client import ask, not_ours
from autoscaler.dashboard.explain import sentences
from autoscaler.errors import UsageError
from autoscaler.telemetry.decision_codec import DecisionRecord, record_from_plain, record_to_plain
from autoscaler.telemetry.history_reader import HistoryReader
from autoscaler.telemetry.plain import decode
from autoscaler.telemetry.status import Status

LAST = 20
"""So many decisions are told if nobody says how many."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where decisions are read: the history of a configuration, a history file, or else a running program."""

    config: Path | None
    history: Path | None
    url: str

    def file(self, pool: str | None) -> Path | None:
        """Return the history file; None if a running program is meant. Raises UsageError as `load`."""
        return self.history if self.config is None else _history_of(self.config, pool)


def explain_decisions(source: Source, pool: str | None, last: int, as_json: bool) -> None:
    """Print the last decisions of `pool`, or of all, oldest first. Raises UsageError if nobody can tell."""
    records = _records(source, pool, last)
    if as_json:
        typer.echo(json.dumps([record_to_plain(record) for record in records], indent=2))
    elif records:
        typer.echo("\n".join(sentences(records)))
    else:
        typer.echo(_why_none(source, pool))


def _records(source: Source, pool: str | None, last: int) -> list[DecisionRecord]:
    history = source.file(pool)
    if history is not None:
        with HistoryReader(history) as reader:
            return reader.decisions(pool, last)
    answer = ask(source.url, "/api/decisions", pool=pool, limit=last)
    try:
        return [record_from_plain(plain) for plain in json.loads(answer)["decisions"]]
    except (ValueError, KeyError, TypeError) as error:
        raise not_ours(source.url) from error


def _why_none(source: Source, pool: str | None) -> str:
    if source.config is None and source.history is None and _decides_nothing(source.url, pool):
        return (
            f"The program at {source.url} decides nothing itself: its controller does. "
            f"Ask that with --url: it is `admin` in the controller's configuration."
        )
    return f"No decisions{f' of pool {pool}' if pool else ''} yet."


def _decides_nothing(url: str, pool: str | None) -> bool:
    """Whether somebody else decides on all that was asked for, as of a sidecar."""
    try:
        status = decode(ask(url, "/api/status"), Status)
    except ValueError as error:
        raise not_ours(url) from error
    return all(each.acts is None for each in status.pools if pool in (None, each.name))


def _history_of(config: Path, pool: str | None) -> Path:
    from autoscaler.settings import load  # noqa: PLC0415 - imports every part, which the other sources need not

    settings = load(config)
    if pool is not None and pool not in settings.pools:
        raise UsageError(f"--pool {pool}: not in {config}; there is {', '.join(settings.pools)}")
    return settings.history
