"""What one signal is, and where it stands in the text of an exporter."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from math import inf


class Kind(StrEnum):
    """How the samples move."""

    GAUGE = "gauge"
    """A level: it may fall as well as rise."""
    COUNTER = "counter"
    """A total that only rises, but for a restart; its signal is the rise per second."""


class Unit(StrEnum):
    """What the exporter counts in; the signal is in our units."""

    NUMBER = "number"
    """Requests, tokens, bytes, seconds, watts: what we count in too."""
    FRACTION = "fraction"
    """A share in [0, 1]."""
    PERCENT = "percent"
    """A share in [0, 100]; the signal is a fraction."""
    MEBIBYTES = "mebibytes"
    MICROSECONDS = "microseconds"

    @property
    def scale(self) -> float:
        """What one of them is in ours."""
        return _SCALES.get(self, 1.0)

    @property
    def is_share(self) -> bool:
        """Whether the signal is a share of something full, so that it has a top."""
        return self in (Unit.FRACTION, Unit.PERCENT)


_SCALES = {Unit.PERCENT: 0.01, Unit.MEBIBYTES: 2.0**20, Unit.MICROSECONDS: 1e-6}


class AddUp(StrEnum):
    """What becomes of several series, and of several exporters."""

    SUM = "sum"
    MEAN = "mean"
    MAX = "max"


class Follows(StrEnum):
    """What makes the signal move, if it is what it is taken for; the self-test holds it to that."""

    LOAD = "load"
    """The work of the whole pool: requests running, tokens per second."""
    OCCUPANCY = "occupancy"
    """How busy each replica is: it rises with the load, and falls when replicas are added."""
    NOTHING = "nothing"
    """Neither: memory that stays allocated, a temperature."""


@dataclass(frozen=True, slots=True)
class SignalSource:
    """One signal of an exporter."""

    name: str
    """What it is called here: `requests_running`."""
    metrics: tuple[str, ...]
    """What exporters call it, the newest name first; the first that is there counts."""
    kind: Kind = Kind.GAUGE
    unit: Unit = Unit.NUMBER
    add_up: AddUp = AddUp.SUM
    follows: Follows = Follows.LOAD
    labels: Mapping[str, str] = field(default_factory=dict)
    """Only series with these values count."""
    blank_from: float = inf
    """Values from here on mean "not known" to the exporter."""

    def __post_init__(self) -> None:
        if not self.metrics or not all(self.metrics):
            raise ValueError(f"signal {self.name}: metrics is empty; name the metric of the exporter")
        if self.kind is Kind.COUNTER and self.unit.is_share:
            raise ValueError(f"signal {self.name}: a counter cannot count in {self.unit}; say type: gauge")
