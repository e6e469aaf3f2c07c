"""From a question to its answer: the fewest replicas that keep the wait and the band's upper edge.

The wait asks for the fewest replicas that keep the wait objective. The band asks for the fewest that are not
busier than its upper edge, and would have no more than leave it busier than its lower edge. The larger need
wins, within the bounds of the fleet, and is named. Of several sizes that keep everything the smallest is the
cheapest, so that is the one recommended.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from math import floor

from autoscaler.domain.decision import Binding
from autoscaler.plan.question import Question
from autoscaler.plan.search import fewest
from autoscaler.plan.service import Queue, Service

ROWS_MAX = 14
"""Sizes shown around the answer, at most; of more than that a selection."""


@dataclass(frozen=True, slots=True)
class Row:
    """One size of the fleet, and what comes of it.

    Attributes
    ----------
    replicas, servers : int
        Size, and slots of it [1].
    utilization, probability_of_wait : float
        [1].
    wait_mean, wait_p95, wait_p99 : float
        [s]; infinite if more comes than can be served.
    wait_bound : float
        What the wait objective is about: the quantile or the mean [s].
    in_band, keeps_wait : bool
        What is kept.
    cost_per_hour : float
        In the currency of the question, or in replica-hours.
    more : mapping
        Figures of this kind of service.
    """

    replicas: int
    servers: int
    utilization: float
    probability_of_wait: float
    wait_mean: float
    wait_p95: float
    wait_p99: float
    wait_bound: float
    in_band: bool
    keeps_wait: bool
    cost_per_hour: float
    more: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Needs:
    """Replicas that each constraint asks for.

    Attributes
    ----------
    wait : int
        The fewest that keep the wait.
    band_least, band_most : int
        The fewest that are not too busy, and the most that are busy enough; where no whole number lies in the
        band the first is the greater.
    """

    wait: int
    band_least: int
    band_most: int

    @property
    def least(self) -> int:
        """The fewest that keep the wait, and are not too busy."""
        return max(self.wait, self.band_least)

    @property
    def agree(self) -> bool:
        """Whether some size keeps both the wait and the band."""
        return self.least <= self.band_most


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a question.

    Attributes
    ----------
    question : Question
        What was asked.
    needs : Needs
        What each constraint asks for.
    recommended : Row
        The size to take.
    binding : Binding
        Which constraint asked for it; none if fewer could not even do the work.
    rows : tuple of Row
        Sizes around it, ascending; the recommended one among them.
    """

    question: Question
    needs: Needs
    recommended: Row
    binding: Binding
    rows: tuple[Row, ...]

    def row(self, replicas: int) -> Row:
        """Return what comes of `replicas`."""
        shown = next((row for row in self.rows if row.replicas == replicas), None)
        return shown or row_of(self.question, replicas)


def answer(question: Question) -> Answer:
    """Answer `question`.

    Raises
    ------
    ValueError
        If a number is outside the range of the queueing formula; the text says which.
    """
    # Each size is asked for several times, and a queue of batches takes a while.
    queue = cache(lambda replicas: question.service.queue(replicas, question.arrival_rate))
    needs = needs_of(question, queue)
    size = max(needs.least, question.replicas_min)
    binding = Binding.WAIT if needs.wait == needs.least else Binding.BAND
    if needs.least == first_stable(question.service, question.arrival_rate):
        binding = Binding.NONE
    if size > needs.least:
        binding = Binding.REPLICAS_MIN
    if question.replicas_max is not None and size > question.replicas_max:
        size, binding = question.replicas_max, Binding.REPLICAS_MAX
    rows = tuple(row_of(question, replicas, queue) for replicas in _sizes_shown(question, needs, size))
    recommended = next(row for row in rows if row.replicas == size)
    return Answer(question, needs, recommended, binding, rows)


def needs_of(question: Question, queue: Callable[[int], Queue] | None = None) -> Needs:
    """Return what each constraint asks for."""
    ask = queue or cache(lambda replicas: question.service.queue(replicas, question.arrival_rate))
    first, band = first_stable(question.service, question.arrival_rate), question.band
    band_least = fewest(lambda n: band.has_room_above(ask(n).utilization), first)
    too_idle = fewest(lambda n: not band.is_busy_enough(ask(n).utilization), first)
    return Needs(fewest(lambda n: question.wait.is_kept_by(ask(n)), first), band_least, too_idle - 1)


def least_needed(question: Question) -> int:
    """Return the fewest that keep the wait and are not too busy: `needs_of(question).least`, sooner found."""
    ask = cache(lambda replicas: question.service.queue(replicas, question.arrival_rate))
    first = first_stable(question.service, question.arrival_rate)
    band_least = fewest(lambda n: question.band.has_room_above(ask(n).utilization), first)
    return fewest(lambda n: question.wait.is_kept_by(ask(n)), band_least)


def first_stable(service: Service, arrival_rate: float) -> int:
    """Return the fewest replicas that can do the work."""
    return 1 if service.overload_is_stable else floor(arrival_rate / service.capacity) + 1


def row_of(question: Question, replicas: int, queue: Callable[[int], Queue] | None = None) -> Row:
    """Return what comes of `replicas`."""
    at_rest = queue(replicas) if queue else question.service.queue(replicas, question.arrival_rate)
    p95, p99 = at_rest.wait_quantile(0.95), at_rest.wait_quantile(0.99)
    known = {0.95: p95, 0.99: p99}
    quantile = question.wait.quantile
    return Row(
        replicas=replicas,
        servers=replicas * question.service.slots_per_replica,
        utilization=at_rest.utilization,
        probability_of_wait=at_rest.probability_of_wait,
        wait_mean=at_rest.wait_mean,
        wait_p95=p95,
        wait_p99=p99,
        wait_bound=known[quantile] if quantile in known else question.wait.of(at_rest),
        in_band=question.band.holds(at_rest.utilization),
        keeps_wait=question.wait.is_kept_by(at_rest),
        cost_per_hour=question.cost_per_hour(replicas),
        more=at_rest.more,
    )


def _sizes_shown(question: Question, needs: Needs, size: int) -> list[int]:
    """Return sizes around the answer: all of them, or a selection with what matters in it."""
    first = first_stable(question.service, question.arrival_rate)
    matter = {size, needs.wait, needs.band_least, max(needs.band_most, first)}
    low, high = max(min(first, size), min(matter) - 3), max(matter) + 1
    if high - low < ROWS_MAX:
        return list(range(low, high + 1))
    matter |= {max(size - 1, low), size + 1}
    apart = (high - low) / (ROWS_MAX - len(matter))
    steps = (round(low + apart * step) for step in range(1, ROWS_MAX - len(matter)))
    spread = {step for step in steps if min(abs(step - other) for other in matter) > apart / 3}
    return sorted(matter | spread)
