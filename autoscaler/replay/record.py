"""What a replay showed, request by request and interval by interval."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from autoscaler.domain import Decision


@dataclass(slots=True)
class Record:
    """Facts only; `report` and `windows` judge them.

    Attributes
    ----------
    arrivals, waits : ndarray, shape (n_requests,)
        Time of arrival [s] and waiting time [s]; a request that never started waits for ever (inf).
    ticks : list of (now, busy_slots_mean, slots, ready, starting, draining)
        One per control interval of the scenario, however often the policy decided.
    decisions : list of (now, decision)
        As returned by the policy.
    replica_seconds, busy_seconds : float
        Paid for, and spent in service within the time replayed [s].
    scale_ups, scale_downs : int
        Decisions that ordered more, or fewer, than there were.
    interruptions, broken : int
        Replicas that were lost, and requests that were in service on them.
    """

    arrivals: NDArray[np.float64]
    waits: NDArray[np.float64]
    ticks: list[tuple[float, float, float, int, int, int]] = field(default_factory=list)
    decisions: list[tuple[float, Decision | int]] = field(default_factory=list)
    replica_seconds: float = 0.0
    busy_seconds: float = 0.0
    scale_ups: int = 0
    scale_downs: int = 0
    interruptions: int = 0
    broken: int = 0
