"""Which class is next: strict priority, bent by floors, ceilings and the right of the overdue.

The contract on starvation, which holds whatever the load, in dispatches of the queue:

    Let N be `starvation_every`. Somebody who is overdue, and whose class is below its ceiling, is sent at the
    latest after (k + 1) N dispatches, k being those overdue before it, counted from its class's bound on.
    And of any N dispatches in a row, at most one goes to somebody because it is overdue.

So a low class cannot starve, and cannot take over either: if more is overdue than one of every N slots
can serve, urgent classes still have all the others, and the order does not become first come, first served.
"""

from collections.abc import Container, Sequence
from math import inf

from autoscaler.dispatch.class_line import ClassLine, MayStart
from autoscaler.dispatch.place import Place


class ClassTurns:
    """Takes the next one out of several classes.

    Parameters
    ----------
    lines : sequence of ClassLine
        The most urgent first.
    starvation_every : int
        N >= 1 of the contract; 1 serves whoever is overdue before everybody else.
    """

    def __init__(self, lines: Sequence[ClassLine], starvation_every: int) -> None:
        self._lines = lines
        self._every = starvation_every
        self._turns_since_overdue = starvation_every

    def pop(self, now: float, may_start: MayStart, classes: Container[str] | None = None) -> Place | None:
        """Take out the one whose turn it is at `now` [s], of some `classes` or all; None if nobody can."""
        lines = []
        for line in self._lines:
            if (
                line.waiting
                and line.running < line.slots_max
                and (classes is None or line.options.name in classes)
            ):
                lines.append(line)
        if len(lines) > 1 or (lines and lines[0].shared):  # else its age is its turn
            overdue = self._overdue(lines, now, may_start)
            if overdue is not None:
                self._turns_since_overdue = 1
                return overdue
            lines.sort(key=lambda line: line.running >= line.slots_floor)  # stable: by priority among equals
        for line in lines:
            place = line.pop(may_start)
            if place is not None:
                self._turns_since_overdue += 1
                return place
        return None

    def _overdue(self, lines: Sequence[ClassLine], now: float, may_start: MayStart) -> Place | None:
        """Take out who has been overdue longest, if it is the turn of the overdue."""
        if self._turns_since_overdue < self._every:
            return None
        longest, found = inf, None
        for line in lines:
            oldest = line.oldest(may_start)
            if oldest is not None and oldest.since + line.options.starvation_bound < longest:
                longest, found = oldest.since + line.options.starvation_bound, (line, oldest)
        if found is None or longest > now:
            return None
        line, place = found
        line.remove(place, served=True)
        return place
