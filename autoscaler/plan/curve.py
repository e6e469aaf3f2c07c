"""An answer as a curve: what comes of each size from the first that can do the work to beyond the band."""

from dataclasses import dataclass

from autoscaler.plan.answer import Answer, Row, first_stable
from autoscaler.plan.words import band, busy, duration, fleet, money, rate

_POINTS, _POINTS_STEEP = 32, 12
_BEYOND = 1.12
"""So far beyond the last size that matters the curve goes on."""


@dataclass(frozen=True, slots=True)
class Curve:
    """What a picture shows; sizes are in servers.

    Attributes
    ----------
    rows : tuple of Row
        Ascending.
    recommended : Row
        The size to mark.
    band : tuple of float
        Servers at the upper and at the lower edge of the band, not rounded.
    wait_seconds : float
        The wait objective [s].
    wait_top : float
        What the axis of waits should reach [s].
    title, subtitle, objective, mark, cost_unit : str
        In words.
    """

    rows: tuple[Row, ...]
    recommended: Row
    band: tuple[float, float]
    wait_seconds: float
    wait_top: float
    title: str
    subtitle: str
    objective: str
    mark: str
    cost_unit: str

    @property
    def servers(self) -> tuple[int, ...]:
        """Sizes, ascending."""
        return tuple(row.servers for row in self.rows)

    @property
    def reach(self) -> tuple[float, float]:
        """What the axis of sizes should show: all of them, and the band."""
        first, last = self.servers[0], self.servers[-1]
        margin = 0.03 * (last - first)
        return min(first, self.band[0]) - margin, max(last, self.band[1]) + margin

    @property
    def objective_in_sight(self) -> bool:
        """Whether the axis of waits reaches the objective: in a fleet that the band asks for, it may not."""
        return self.wait_seconds <= self.wait_top

    @property
    def mark_on_the_left(self) -> bool:
        """Whether words beside the recommended size have more room on its left."""
        left, right = self.reach
        return self.recommended.servers > left + 0.6 * (right - left)

    @property
    def mark_height(self) -> float:
        """Where to mark the recommended size on the axis of waits [s]."""
        return min(self.recommended.wait_bound, self.wait_top)


def curve_of(answer: Answer) -> Curve:
    """Return what a picture of `answer` shows.

    The recommended size may be one that cannot do the work, if no more are allowed; its waits are infinite.
    """
    question, needs = answer.question, answer.needs
    first = first_stable(question.service, question.arrival_rate)
    start = min(first, answer.recommended.replicas)
    last = max(needs.least, needs.band_most, answer.recommended.replicas)
    end = max(last + 2, round(start + (last - start) * _BEYOND))
    # Waits of a large fleet fall within few of its sizes: those are drawn more finely.
    steep = 2 * needs.wait - first + 1
    sizes = _spread(start, end, _POINTS) | _spread(start, min(steep, end), _POINTS_STEEP)
    rows = tuple(answer.row(size) for size in sorted(sizes | {answer.recommended.replicas}))
    row, wait = answer.recommended, question.wait
    unit = f"{question.currency} an hour".strip() if question.price is not None else "replica-hours an hour"
    cost = f"{money(question, row.cost_per_hour)} an hour" if question.price is not None else ""
    return Curve(
        rows=rows,
        recommended=row,
        band=_band_edges(answer, rows),
        wait_seconds=wait.seconds,
        wait_top=_top(answer, rows),
        title=f"{fleet(question, row.replicas)} for {rate(question.arrival_rate)}",
        subtitle=f"{busy(row.utilization, question)} (band {band(question)}) · {answer.binding.value} binds",
        objective=f"{wait} within {duration(wait.seconds)}",
        mark=" · ".join(
            part
            for part in (fleet(question, row.replicas), f"{wait} {duration(row.wait_bound)}", cost)
            if part
        ),
        cost_unit=unit[0].upper() + unit[1:],
    )


def _spread(first: int, last: int, points: int) -> set[int]:
    """Return about so many whole numbers, evenly spread, both ends among them."""
    step = max(1.0, (last - first) / points)
    return {round(first + step * point) for point in range(int((last - first) / step) + 1)} | {last}


def _band_edges(answer: Answer, rows: tuple[Row, ...]) -> tuple[float, float]:
    """Return the servers, not rounded, at which utilization is at the band's upper and lower edge."""
    upper, lower = (
        _servers_at(min(rows, key=lambda row: abs(row.utilization - edge)), edge)
        for edge in (answer.question.band.high, answer.question.band.low)
    )
    return upper, lower


def _servers_at(row: Row, utilization: float) -> float:
    """From a size that is nearly so busy: work is servers times utilization."""
    return row.servers * row.utilization / utilization


def _top(answer: Answer, rows: tuple[Row, ...]) -> float:
    """Return a top of the axis that shows where the curves cross the objective, not where they grow."""
    chosen = answer.recommended
    wanted = max(2.5 * answer.question.wait.seconds, 1.6 * min(chosen.wait_p99, 1e9))
    highest = max((row.wait_p99 for row in rows if row.wait_p99 < float("inf")), default=wanted)
    return min(wanted, 1.05 * highest) if highest > 0 else max(wanted, 1e-3)
