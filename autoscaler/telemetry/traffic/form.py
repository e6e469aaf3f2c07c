"""What a reader of one kind of file is given, promises, and hands back."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from autoscaler.telemetry.prometheus_meaning import Kind
from autoscaler.telemetry.traffic.demand import Floats, Requests
from autoscaler.telemetry.traffic.faults import FaultCount
from forecasting.series import Series


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the user says of a file that it does not say itself; see `read_traffic`."""

    interval: float | None = None
    duration_unit: str | None = None
    gaps: bool = False
    zone: str | None = None
    only_model: str | None = None
    kind: Kind | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Told:
    """What a file told; the fields are those of `Traffic`."""

    demand: Requests | Series
    notes: tuple[str, ...] = ()
    zone: str = ""
    models: Mapping[str, int] = field(default_factory=dict)
    tokens_in: Floats | None = None
    tokens_out: Floats | None = None


class Form(Protocol):
    """Takes the lines of one kind of file."""

    name: str

    def take(self, number: int, line: str) -> None:
        """Take in line `number`; raises LineUnusable with the reason if it cannot."""

    def told(self, faults: FaultCount) -> Told:
        """Return what the lines told, and note those that only now turn out to be unusable.

        Raises UsageError if they told nothing.
        """
