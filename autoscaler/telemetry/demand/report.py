"""What a door says of its last intervals; a value that becomes JSON and is read back (`plain`).

    {"incarnation": "5f0c…", "sequence": 712, "interval": 1.0,
     "ready": true, "not_ready": [], "leaving": false,
     "pools": {"chat": {"replicas_ready": 1, "slots": 8, "busy": 3,
                        "intervals": [{"sequence": 712, "age": 0.41, "observation": {…}}]}}}

Intervals are numbered from 1 at the start of the process, whose `incarnation` is made up anew at each start.
Who remembers the last number that it saw, and of which incarnation, can ask for what came after it, sees how
many it has missed if the first one is not the next one, and can tell what is missing from what is zero.
Ages are lengths of time, so the clocks of two machines need not agree. Fields may be added, none will change
its meaning.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields

from autoscaler.domain import Observation
from autoscaler.telemetry.plain import decode

PATH = "/api/observations"
REPORT_BYTES_MAX = 16 * 2**20
"""A longer report is not read [bytes]; ten minutes of ten pools take about two megabytes."""

_NUMBER_MAX = 2.0**53
"""No count, sum or age is so large; who says so counts wrongly."""
_INTERVAL_MIN = 1e-9
"""No clock knows shorter ones [s]."""
_COUNTED = tuple(each.name for each in fields(Observation) if each.name != "is_partial")


@dataclass(frozen=True, slots=True)
class IntervalReport:
    """One interval of one pool."""

    sequence: int
    age: float
    """Since its end [s]."""
    observation: Observation


@dataclass(frozen=True, slots=True)
class PoolReport:
    """One pool at this door."""

    replicas_ready: int
    slots: int
    """Of ready servers [1]."""
    busy: int
    """In use now [1]."""
    intervals: tuple[IntervalReport, ...]
    """Those that were asked for and are still kept, the oldest first."""


@dataclass(frozen=True, slots=True)
class DemandReport:
    """Everything that a door says."""

    incarnation: str
    sequence: int
    """Of the last interval; 0 before the first."""
    interval: float
    """Length that intervals have, but for the moments in which the process stood still [s]."""
    ready: bool
    """Whether it takes requests now."""
    leaving: bool
    """Whether it takes nothing new and will end: if it does not answer after this, it has ended in order."""
    not_ready: tuple[str, ...] = ()
    pools: dict[str, PoolReport] = field(default_factory=dict)


def read_report(raw: bytes) -> DemandReport:
    """Read what a door said.

    Raises ValueError if it is no report, or says what cannot be, so that no sum has it in; the text says what
    is wrong.
    """
    if len(raw) > REPORT_BYTES_MAX:
        raise ValueError(f"the report has {len(raw)} bytes; at most {REPORT_BYTES_MAX} are read")
    report = decode(raw, DemandReport)
    if not report.incarnation:
        raise ValueError("incarnation: need a text that tells this process from all others, got ''")
    for name, number in _numbers(report):
        if not 0 <= number < _NUMBER_MAX:
            raise ValueError(f"{name}: need 0 or more, and less than 2**53, got {str(number)[:20]}")
    for pool in report.pools.values():
        for each in pool.intervals:
            if each.observation.interval < _INTERVAL_MIN:
                raise ValueError(f"interval: need {_INTERVAL_MIN} s or more, got {each.observation.interval}")
    return report


def _numbers(report: DemandReport) -> Iterator[tuple[str, float]]:
    """Return every number that is counted with, and what it is called."""
    for pool in report.pools.values():
        yield from (("slots", pool.slots), ("busy", pool.busy))
        for each in pool.intervals:
            yield from (("sequence", each.sequence), ("age", each.age))
            yield from ((name, getattr(each.observation, name)) for name in _COUNTED)
