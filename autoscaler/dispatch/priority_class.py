"""The classes of a queue: who goes first, what each is sure of, and how long it may wait.

Classes are strict: a slot goes to the most urgent class that has somebody waiting. Three things bend that,
each within a bound that is stated here and held by `turn.py`: a floor of slots, a ceiling of slots, and the
starvation bound. None of them changes the class of a request.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from autoscaler.domain import STANDARD


@dataclass(frozen=True, slots=True)
class PriorityClass:
    """One class of requests, and what it is sure of."""

    name: str
    """As `Request.priority_class` gives it, and as metrics label it."""
    priority: int
    """1 is the most urgent. No two classes of a queue have the same."""
    wait_timeout: float | None = None
    """So long may a request of this class wait, where it does not say itself [s]; None: as its route says."""
    starvation_bound: float = inf
    """Who has waited so long is *overdue* [s], and has a right to one of every `starvation_every` slots,
    before more urgent classes; infinity: never. Set it below the time-out, or it helps nobody."""
    slots_floor: float = 0.0
    """While the class holds less than this fraction of the slots, it goes before more urgent ones [0..1]. Set
    it where a class must make progress through any overload; the floors of a queue add up to 1 at most."""
    slots_share: float = 1.0
    """It never holds more than this fraction of the slots, though at least one [0..1]. Lower it where long
    requests of a class would leave no slot to urgent ones; slots may then idle while it waits."""
    queue_share: float = 1.0
    """It never fills more than this fraction of the queue, in requests, bytes and seconds [0..1]. Below 1, a
    flood of this class leaves room for the others."""
    preempts: bool = False
    """When no slot is free, one of its requests may take the slot of a less urgent preemptible one."""
    preemptible: bool = False
    """Its running requests may be stopped before their first byte and start again later. Only for work that
    can be done twice."""

    def __post_init__(self) -> None:
        if self.priority < 1:
            raise ValueError(
                f"need priority >= 1 (the most urgent) for class {self.name!r}, got {self.priority}"
            )
        for name in ("slots_floor", "slots_share", "queue_share"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"need {name} in 0..1 for class {self.name!r}, got {getattr(self, name)}")
        if self.wait_timeout is not None and not self.wait_timeout > 0:
            raise ValueError(f"need wait_timeout > 0 for class {self.name!r}, got {self.wait_timeout}")
        if not self.starvation_bound > 0:
            raise ValueError(
                f"need starvation_bound > 0 for class {self.name!r}, got {self.starvation_bound}"
            )


DEFAULT_CLASSES = (
    PriorityClass("critical", 1),
    PriorityClass(STANDARD, 2, starvation_bound=30.0),
    PriorityClass("bulk", 3, wait_timeout=600.0, starvation_bound=120.0, queue_share=0.5),
    PriorityClass("deferrable", 4, wait_timeout=86400.0, starvation_bound=3600.0, queue_share=0.5),
)
"""People who wait for the first token; everything that says nothing; batches of a pipeline; work that has
until tomorrow."""


def check_classes(classes: Sequence[PriorityClass]) -> None:
    """Raise ValueError, naming what is wrong, unless `classes` make a queue."""
    if not classes:
        raise ValueError("need at least one class")
    for name in ("name", "priority"):
        values = [getattr(each, name) for each in classes]
        if twice := next((value for value in values if values.count(value) > 1), None):
            raise ValueError(f"need a {name} of its own for each class, got {twice!r} twice")
    if (floors := sum(each.slots_floor for each in classes)) > 1:
        raise ValueError(
            f"need slots_floor of all classes to add up to 1 at most, got {floors:g}; lower one of them"
        )
