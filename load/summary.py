"""From records to figures.

Percentiles are observed values: the least that at least the fraction q does not exceed. A request that
timed out counts with the time it had waited by then, which is too little but not nothing; one that broke
off before an answer (refused, reset) has no latency, only its place among the failures.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from load.generator import Record


@dataclass(frozen=True)
class Spread:
    """Percentiles of a time, and its mean and greatest value [s]; None throughout if there was none to
    measure."""

    p50: float | None
    p95: float | None
    p99: float | None
    mean: float | None
    max: float | None

    @classmethod
    def of(cls, values: Iterable[float | None]) -> "Spread":
        """Return the figures of the values that are not None."""
        known = np.array([value for value in values if value is not None])
        if known.size == 0:
            return cls(None, None, None, None, None)
        p50, p95, p99 = (
            float(value) for value in np.quantile(known, (0.5, 0.95, 0.99), method="inverted_cdf")
        )
        return cls(p50, p95, p99, float(known.mean()), float(known.max()))


@dataclass(frozen=True)
class Summary:
    """What a run showed.

    Attributes
    ----------
    requests, failures, unfinished : int
        Sent; of these without a good answer; of these cut off when the run was stopped.
    seconds : float
        From the start of the run to the end of its last request [s].
    latency : Spread
        From the intended send time to the last byte [s].
    first_byte : Spread
        From the intended send time to the head of the answer [s].
    wait, service : Spread
        Time in the queue and in a slot, as the server tells by `Server-Timing` [s].
    lateness : Spread
        By how much the generator itself sent later than intended [s]; more than a few ms: this machine is
        too busy.
    statuses, errors : dict of str to int
        How many answers of each status, how many failures of each kind without a whole answer.
    """

    requests: int
    failures: int
    unfinished: int
    seconds: float
    latency: Spread
    first_byte: Spread
    wait: Spread
    service: Spread
    lateness: Spread
    statuses: dict[str, int]
    errors: dict[str, int]

    @property
    def completed_per_second(self) -> float:
        """Good answers over the whole run [1/s]."""
        good = self.requests - self.failures - self.unfinished
        return good / self.seconds if self.seconds > 0 else 0.0


def summarize(records: Sequence[Record]) -> Summary:
    """Return the figures of a run."""
    finished = [record for record in records if record.finished]
    measured = [record for record in finished if record.error in (None, "timeout")]
    return Summary(
        requests=len(records),
        failures=sum(record.failed for record in finished),
        unfinished=len(records) - len(finished),
        seconds=max((record.end for record in finished if record.end is not None), default=0.0),
        latency=Spread.of(record.latency for record in measured),
        first_byte=Spread.of(
            None if record.first_byte is None else record.first_byte - record.intended for record in measured
        ),
        wait=Spread.of(record.queue_time for record in finished),
        service=Spread.of(record.service_time for record in finished),
        lateness=Spread.of(record.sent - record.intended for record in records),
        statuses=dict(sorted(Counter(str(record.status) for record in finished if record.status).items())),
        errors=dict(Counter(record.error for record in finished if record.error).most_common()),
    )
