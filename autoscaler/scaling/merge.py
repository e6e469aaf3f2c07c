"""Observations of one pool that were made at several places, as the one that a single place would have made.

A pool that is served behind several doors (a sidecar in each pod, a few proxies) is one stream of requests
that was dealt out. Counts and sums add up, times in use add up, and whoever has waited longest anywhere has
waited longest. What does not add up is time: of one door, intervals follow each other; of several, they run
side by side.
"""

from collections.abc import Sequence
from dataclasses import replace

from autoscaler.domain import Observation


def side_by_side(observations: Sequence[Observation], interval: float, wall_time: float) -> Observation:
    """Merge observations of one interval that were made at different doors.

    Parameters
    ----------
    observations : sequence of Observation
        One of each door; their own intervals may differ a little from `interval`. Of none: nothing came.
    interval, wall_time : float
        Length of the merged interval [s], and its end on the calendar [s since the epoch].
    """
    return Observation(
        interval=interval,
        arrivals=sum(each.arrivals for each in observations),
        completions=sum(each.completions for each in observations),
        service_time_sum=sum(each.service_time_sum for each in observations),
        service_time_square_sum=sum(each.service_time_square_sum for each in observations),
        busy_slots_mean=sum(each.busy_slots_mean for each in observations),
        in_flight=sum(each.in_flight for each in observations),
        queue_depth=sum(each.queue_depth for each in observations),
        oldest_wait=max((each.oldest_wait for each in observations), default=0.0),
        wall_time=wall_time,
        rejected=sum(each.rejected for each in observations),
        tokens_in=sum(each.tokens_in for each in observations),
        tokens_out=sum(each.tokens_out for each in observations),
        is_partial=any(each.is_partial for each in observations),
    )


def one_after_another(observations: Sequence[Observation]) -> Observation:
    """Join intervals of one door that follow each other, the oldest first.

    Raises
    ------
    ValueError
        If there is none.
    """
    if not observations:
        raise ValueError("need at least one observation to join")
    last, length = observations[-1], sum(each.interval for each in observations)
    joined = side_by_side(observations, length, last.wall_time)
    return replace(
        joined,
        busy_slots_mean=sum(each.busy_slots_mean * each.interval for each in observations) / length,
        in_flight=last.in_flight,
        queue_depth=last.queue_depth,
        oldest_wait=last.oldest_wait,
    )


def carried_on(seen: Observation, interval: float) -> Observation:
    """Say what another `interval` [s] shows if all goes on as in `seen`: rates stay, and so does who waits.

    Counts are whole, so the rates are kept up to a half of one; sums follow the counts that they belong to.
    """
    share = interval / seen.interval
    completions = round(seen.completions * share)
    of_completed = completions / seen.completions if seen.completions else 0.0
    return replace(
        seen,
        interval=interval,
        arrivals=round(seen.arrivals * share),
        completions=completions,
        service_time_sum=seen.service_time_sum * of_completed,
        service_time_square_sum=seen.service_time_square_sum * of_completed,
        rejected=round(seen.rejected * share),
        tokens_in=round(seen.tokens_in * share),
        tokens_out=round(seen.tokens_out * share),
    )
