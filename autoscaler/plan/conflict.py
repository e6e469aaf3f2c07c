"""When the band and the wait exclude one another: by how much, and what helps.

With few slots a wait that is short against the service can be kept only by slots that are idle most of the
time: the spare servers that the wait asks for grow as the square root of the load, what the band leaves spare
grows in proportion to it. Below some load the first is more than the second. Or no whole number of replicas
lies in the band, when one more or less changes utilization by more than the band is wide.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from autoscaler.plan.answer import Answer, first_stable, least_needed
from autoscaler.plan.question import Question

_POOLS = (2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32, 48, 64)
"""Numbers of like pools that are tried as one."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """Band and wait exclude one another, and what each remedy comes to.

    Attributes
    ----------
    replicas : int
        The fewest that keep the wait and the band's upper edge [1].
    utilization : float
        With those: below the band [1].
    wait_binds : bool
        Whether it is the wait that asks for so many; else no whole number of replicas lies in the band.
    band_most : int
        The most replicas that are busy enough [1]; 0 if not even one is.
    band_wait : float or None
        What the wait would be with those [s]; None if they are too busy, or cannot do the work.
    fill : float
        Work that can wait which would bring utilization to the band's lower edge [busy slots].
    pools : int or None
        Of so many like pools together, one pool keeps both [1]; None if not even the most that were tried.
    pooled_replicas : int
        Replicas of that one pool [1].
    """

    replicas: int
    utilization: float
    wait_binds: bool
    band_most: int
    band_wait: float | None
    fill: float
    pools: int | None
    pooled_replicas: int


def conflict_of(answer: Answer) -> Conflict | None:
    """Return the conflict in `answer`, or None if some size keeps both the wait and the band."""
    question, needs = answer.question, answer.needs
    if needs.agree:
        return None
    row = answer.row(needs.least)
    idle = question.band.low - row.utilization
    pools, pooled_replicas = next(_pools_that_agree(question), (None, 0))
    return Conflict(
        replicas=needs.least,
        utilization=row.utilization,
        wait_binds=needs.wait > needs.band_least,
        band_most=needs.band_most,
        band_wait=_wait_in_band(answer),
        fill=idle * row.servers,
        pools=pools,
        pooled_replicas=pooled_replicas,
    )


def _pools_that_agree(question: Question) -> Iterator[tuple[int, int]]:
    """Yield numbers of like pools that keep both as one, each with the replicas of that one."""
    for pools in _POOLS:
        rate = pools * question.arrival_rate
        replicas = least_needed(replace(question, arrival_rate=rate))
        if question.band.is_busy_enough(question.service.queue(replicas, rate).utilization):
            yield pools, replicas


def _wait_in_band(answer: Answer) -> float | None:
    needs, question = answer.needs, answer.question
    if needs.band_most < max(needs.band_least, first_stable(question.service, question.arrival_rate)):
        return None
    return answer.row(needs.band_most).wait_bound
