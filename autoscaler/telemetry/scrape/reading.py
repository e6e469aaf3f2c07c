"""What became of asking for a signal: a value with its age, or a fault; never a zero in place of either."""

from dataclasses import dataclass
from math import isnan, nan


@dataclass(frozen=True, slots=True)
class SignalReading:
    """One signal as it was read last."""

    value: float = nan
    """In our units; not-a-number if it was never read."""
    read_at: float = nan
    """When the value was read [s, monotonic]."""
    fault: str = ""
    """Why the latest try gave none, for a person; empty if it did. The value is then an older one."""
    declared: str = ""
    """The type that the exporter gives the metric: `gauge`, `counter`, …; empty if it was never read."""

    def age(self, now: float) -> float:
        """How old the value is [s]; not-a-number if there is none."""
        return now - self.read_at

    def is_fresh(self, now: float, age_max: float) -> bool:
        """Whether there is a value that is not older than `age_max` [s]."""
        return not isnan(self.value) and self.age(now) <= age_max
