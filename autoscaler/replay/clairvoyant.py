"""The floor for money: what it takes if every arrival is known and (almost) nobody waits.

In every 10 seconds as many replicas are there as the greatest number of requests in service at once needs,
had none of them waited. They start and end in no time, so no policy can have this; its distance says how
much knowing the future and instant starts would be worth. It is no strict bound for policies that
let requests wait long, for they can spread work over time; below busy hours nobody gets.

With batching, how long a request is served depends on who is served beside it. Two figures are
both too low: the number in service if each were served as fast as alone, and all work at the pace of full
replicas. The floor is the larger of the two.
"""

import numpy as np
from numpy.typing import NDArray

from autoscaler.replay.scenario import Scenario

_STEP = 10.0  # s


def clairvoyant_gpu_hours(scenario: Scenario, seed: int = 0) -> float:
    """Fewest replica-hours, in steps of 10 s, if every arrival were known and none waited [h].

    `seed` as in `replay`: the bound is of these very requests.
    """
    demand_rng, _ = np.random.default_rng(seed).spawn(2)
    arrivals = scenario.arrival_times(demand_rng)
    work = scenario.work(len(arrivals), demand_rng)
    peaks = _peaks_in_service(arrivals, work * scenario.time_per_work(1), scenario.duration)
    slots = scenario.slots_per_replica
    replica_seconds = float(np.ceil(peaks / slots).sum()) * _STEP
    if scenario.batching is not None:
        at_full_pace = float(work.sum()) * scenario.time_per_work(slots) / slots
        replica_seconds = max(replica_seconds, at_full_pace)
    return replica_seconds / 3600


def _peaks_in_service(
    arrivals: NDArray[np.float64], service_times: NDArray[np.float64], duration: float
) -> NDArray[np.float64]:
    """Greatest number in service at once in each step, if nobody waits, shape (n_steps,)."""
    ends = np.sort(arrivals + service_times)
    steps = int(np.ceil(duration / _STEP))
    # The number in service peaks just after an arrival, or stands at what the step before left.
    in_service = np.arange(1, len(arrivals) + 1) - np.searchsorted(ends, arrivals, side="right")
    step_starts = np.arange(steps) * _STEP
    left = np.searchsorted(arrivals, step_starts) - np.searchsorted(ends, step_starts, side="right")
    peaks = left.astype(np.float64)
    np.maximum.at(peaks, np.minimum((arrivals // _STEP).astype(np.int64), steps - 1), in_service)
    return peaks
