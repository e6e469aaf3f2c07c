"""What a self-test looks at: a signal beside what we measure ourselves, over the last minutes."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import sqrt

WINDOW = 300.0
"""So far back a signal is judged [s]."""
SAMPLES_MAX = 600
"""More are not kept [1]; the oldest goes first."""


@dataclass(frozen=True, slots=True)
class Circumstances:
    """Our own measures of the pool over the same interval; they need no exporter."""

    busy_slots: float
    """Mean number of slots with a request in them [1]."""
    slots: float
    """Of ready replicas [1]."""
    queue_depth: float
    """Waiting at the end of the interval [requests]."""
    replicas: int
    """Ready ones [1]."""

    @property
    def occupancy(self) -> float:
        """Share of the slots that was busy; 0 where there are none."""
        return self.busy_slots / self.slots if self.slots > 0 else 0.0

    @property
    def demand(self) -> float:
        """Requests in slots and in the queue [1]."""
        return self.busy_slots + self.queue_depth


@dataclass(frozen=True, slots=True)
class Sample:
    """One value of the signal, in our units, and what was going on."""

    at: float
    """[s, monotonic]."""
    value: float
    around: Circumstances


class Window:
    """The samples of the last `WINDOW` seconds."""

    def __init__(self) -> None:
        self._samples: deque[Sample] = deque(maxlen=SAMPLES_MAX)

    def add(self, sample: Sample) -> None:
        """Take one in; let go of those that are too old."""
        self._samples.append(sample)
        while self._samples[0].at < sample.at - WINDOW:
            self._samples.popleft()

    def samples(self) -> tuple[Sample, ...]:
        """Return what is there, oldest first."""
        return tuple(self._samples)


Measure = Callable[[Sample], float]


def value_of(sample: Sample) -> float:
    """The signal itself, as a measure."""
    return sample.value


def span(samples: Sequence[Sample]) -> float:
    """Return the time from the first to the last sample [s]."""
    return samples[-1].at - samples[0].at if samples else 0.0


def mean(samples: Sequence[Sample], measure: Measure) -> float:
    """Return the mean of a measure; 0 for no samples."""
    return sum(map(measure, samples)) / len(samples) if samples else 0.0


def standard_error(samples: Sequence[Sample], measure: Measure) -> float:
    """Return the standard error of the mean, as if samples were independent; 0 for fewer than two."""
    number, middle = len(samples), mean(samples, measure)
    if number < 2:
        return 0.0
    return sqrt(sum((measure(each) - middle) ** 2 for each in samples) / (number - 1) / number)


def relative_range(samples: Sequence[Sample], measure: Measure) -> float:
    """Return how far a measure moved, highest less lowest, against its largest size; 0 if it is always 0."""
    values = [measure(each) for each in samples]
    size = max(map(abs, values), default=0.0)
    return (max(values) - min(values)) / size if size > 0 else 0.0


def correlation(samples: Sequence[Sample], one: Measure, other: Measure) -> float:
    """Return Pearson's correlation of two measures; 0 if either does not move."""
    mean_one, mean_other = mean(samples, one), mean(samples, other)
    pairs = [(one(each) - mean_one, other(each) - mean_other) for each in samples]
    size = sqrt(sum(a * a for a, _ in pairs) * sum(b * b for _, b in pairs))
    return sum(a * b for a, b in pairs) / size if size > 0 else 0.0
