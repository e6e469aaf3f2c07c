"""Lines that cannot be used: why, how many, and the first of each."""

from dataclasses import dataclass, field

from autoscaler.telemetry.traffic.demand import EXAMPLE_LENGTH, EXAMPLES_MAX, Fault


class LineUnusable(Exception):
    """A line that cannot be used; its text is the reason, the same for all lines of the same fault."""


@dataclass(slots=True)
class FaultCount:
    """Counts lines that cannot be used, by reason, and keeps the first of each."""

    _counts: dict[str, int] = field(default_factory=dict)
    _examples: dict[str, list[tuple[int, str]]] = field(default_factory=dict)

    def add(self, reason: str, number: int, line: str) -> None:
        """Take note of line `number`."""
        self._counts[reason] = self._counts.get(reason, 0) + 1
        examples = self._examples.setdefault(reason, [])
        if len(examples) < EXAMPLES_MAX:
            examples.append((number, line[:EXAMPLE_LENGTH].strip()))

    def faults(self) -> tuple[Fault, ...]:
        """Everything noted, the most frequent reason first."""
        by_count = sorted(self._counts.items(), key=lambda item: -item[1])
        return tuple(Fault(reason, count, tuple(self._examples[reason])) for reason, count in by_count)
