"""The self-test of a signal from outside: may it be used, and if not, what is wrong with it?

    LEARNING ──enough seen, and it moved──▶ GOOD
        │                                    │
        └──────── a check fails ─────────────┤
                                             ▼
                                        QUARANTINED ──nothing found for a whole window──▶ LEARNING

Other systems believe what they are told: a counter fed as a gauge scales to the maximum and stays there,
percent read as a fraction does the same, and a GPU-busy figure that always reads 0.95 never scales down. Here
no signal is used before it was seen to move with our own measures, and one that fails a check is quarantined
with a diagnosis in words. Nothing waits for it: demand is measured at our own door.

Pure: knows no clock; `now` is monotonic [s]. Five minutes of samples, one each interval, are enough for every
diagnosis.
"""

from dataclasses import dataclass
from enum import StrEnum
from math import isnan

from autoscaler.telemetry.scrape.reading import SignalReading
from autoscaler.telemetry.scrape.source import Follows, Kind, SignalSource, Unit
from autoscaler.telemetry.signal_test_checks import (
    OVER_THE_TOP,
    SAMPLES_MIN,
    SPAN_MIN,
    constant,
    counter_as_gauge,
    falls,
    saturated,
    unresponsive,
    wrong_unit,
)
from autoscaler.telemetry.signal_test_window import (
    WINDOW,
    Circumstances,
    Sample,
    Window,
    relative_range,
    span,
    value_of,
)

STALE_AFTER = 60.0
"""A signal without a new value for so long is stale [s]."""


class Standing(StrEnum):
    """Whether a signal may be used."""

    LEARNING = "learning"
    """Not yet: too little was seen, or nothing moved so far."""
    GOOD = "good"
    QUARANTINED = "quarantined"


class Diagnosis(StrEnum):
    """What is wrong with a signal."""

    COUNTER_AS_GAUGE = "counter_as_gauge"
    WRONG_UNIT = "wrong_unit"
    SATURATED = "saturated"
    CONSTANT = "constant"
    STALE = "stale"
    UNRESPONSIVE = "unresponsive"


_CHECKS = (
    (Diagnosis.WRONG_UNIT, wrong_unit),
    (Diagnosis.COUNTER_AS_GAUGE, counter_as_gauge),
    (Diagnosis.SATURATED, saturated),
    (Diagnosis.UNRESPONSIVE, unresponsive),
    (Diagnosis.CONSTANT, constant),
)
"""In the order in which one explains the others: a counter grows over the top, and a unit is told at once."""


@dataclass(frozen=True, slots=True)
class Grade:
    """What is held of a signal now."""

    standing: Standing
    diagnosis: Diagnosis | None = None
    text: str = ""
    """The diagnosis as a sentence, with the remedy where there is one."""

    @property
    def is_usable(self) -> bool:
        """Whether anything may be decided by it."""
        return self.standing is Standing.GOOD

    def __str__(self) -> str:
        return f"{self.standing} ({self.diagnosis}): {self.text}" if self.diagnosis else str(self.standing)


class SignalTest:
    """Grades one signal, interval by interval."""

    def __init__(self, source: SignalSource) -> None:
        self.grade = Grade(Standing.LEARNING)
        self._source = source
        self._window = Window()
        self._began: float | None = None
        self._read_at = float("nan")
        self._found_at = 0.0

    def __repr__(self) -> str:
        return f"<SignalTest {self._source.name} {self.grade}>"

    def take(self, reading: SignalReading, around: Circumstances, now: float) -> Grade:
        """Take in what became of the signal in this interval; return what is held of it from now on."""
        self._began = now if self._began is None else self._began
        if not isnan(reading.value) and reading.read_at != self._read_at:
            self._read_at = reading.read_at
            self._window.add(Sample(now, reading.value, around))
        found = self._stale(reading, now) or self._declared(reading) or self._checked()
        if found is not None:
            self._found_at, self.grade = now, found
        elif self.grade.standing is not Standing.QUARANTINED or self._is_served(now):
            self.grade = Grade(Standing.GOOD if self._is_proven() else Standing.LEARNING)
        return self.grade

    def _stale(self, reading: SignalReading, now: float) -> Grade | None:
        last = self._began if isnan(self._read_at) else self._read_at
        if last is None or now - last <= STALE_AFTER:
            return None
        why = f": {reading.fault}" if reading.fault else ""
        return _quarantined(Diagnosis.STALE, f"no new value for {now - last:.0f} s{why}")

    def _declared(self, reading: SignalReading) -> Grade | None:
        if self._source.kind is Kind.GAUGE and reading.declared == "counter":
            text = "its exporter declares it a counter, so say type: counter"
            return _quarantined(Diagnosis.COUNTER_AS_GAUGE, text)
        return None

    def _checked(self) -> Grade | None:
        samples = self._window.samples()
        for diagnosis, check in _CHECKS:
            if (text := check(self._source, samples)) is not None:
                return _quarantined(diagnosis, text)
        return None

    def _is_served(self, now: float) -> bool:
        """Whether a quarantine has lasted long enough since its reason was last seen."""
        is_stale = self.grade.diagnosis is Diagnosis.STALE
        return now - self._found_at >= (STALE_AFTER if is_stale else WINDOW)

    def _is_proven(self) -> bool:
        """Whether it was seen to do what it claims: to move, both ways, farther than in a wrong unit."""
        samples = self._window.samples()
        if len(samples) < SAMPLES_MIN or span(samples) < 0.9 * SPAN_MIN:
            return False
        if self._source.follows is Follows.NOTHING:
            return True
        unit = self._source.unit
        may_be_fraction = unit is Unit.PERCENT and max(map(value_of, samples)) <= OVER_THE_TOP * unit.scale
        return relative_range(samples, value_of) >= 0.02 and falls(samples) > 0 and not may_be_fraction


def _quarantined(diagnosis: Diagnosis, text: str) -> Grade:
    return Grade(Standing.QUARANTINED, diagnosis, text)
