"""Decisions as a person reads them: one line each, in order; what was held for long is told once."""

from collections.abc import Iterable
from datetime import datetime, tzinfo

from autoscaler.domain import Hold
from autoscaler.telemetry.decision_codec import DecisionRecord


def sentences(records: Iterable[DecisionRecord], zone: tzinfo | None = None) -> list[str]:
    """Tell decisions in words, oldest first.

    Parameters
    ----------
    records : iterable of DecisionRecord
        Oldest first, of one pool or of several.
    zone : tzinfo, optional
        For the times; the local zone of this machine if not given.

    Returns
    -------
    list of str
        Such as ``2026-11-30 14:05:10 chat  Scale up from 4 to 6 replicas: …``. Decisions in a row to
        hold the same number of replicas of a pool for the same reason share one line, which
        stands where the first of them would. Where replicas have other slots than before, that is said.
    """
    runs: list[list[DecisionRecord]] = []
    slots_before: list[int | None] = []
    current: dict[str, list[DecisionRecord]] = {}
    for record in records:
        run = current.get(record.pool)
        if run is not None and _held_as_before(run[-1], record):
            run.append(record)
        else:
            slots_before.append(None if run is None else run[-1].fleet.slots_per_replica)
            current[record.pool] = [record]
            runs.append(current[record.pool])
    return [_told(run, zone, before) for run, before in zip(runs, slots_before, strict=True)]


def _held_as_before(earlier: DecisionRecord, later: DecisionRecord) -> bool:
    a, b = earlier.decision, later.decision
    if earlier.fleet.slots_per_replica != later.fleet.slots_per_replica:
        return False
    return isinstance(a, Hold) and isinstance(b, Hold) and (a.desired, a.reason) == (b.desired, b.reason)


def _told(run: list[DecisionRecord], zone: tzinfo | None, slots_before: int | None) -> str:
    """Tell a run by its first decision, and how often and until when it was repeated."""
    first, last = run[0], run[-1]
    line = f"{_calendar(first.wall_time, zone)} {first.pool}  {first.decision}"
    slots = first.fleet.slots_per_replica
    if slots_before not in (None, slots):
        line += f" [{slots} slots a replica now, {slots_before} before]"
    if len(run) == 1:
        return line
    began, ended = _calendar(first.wall_time, zone), _calendar(last.wall_time, zone)
    until = ended if ended[:10] != began[:10] else ended[11:]
    return f"{line} (held {len(run)} times until {until})"


def _calendar(wall_time: float, zone: tzinfo | None) -> str:
    return datetime.fromtimestamp(wall_time, zone).strftime("%Y-%m-%d %H:%M:%S")
