"""Which pods go when there shall be fewer, and how far the number may be lowered now; values in, values out.

Pods that are not ready hold nothing and go at once. Of the ready ones those leave first that do not answer,
then the least busy: they get nothing new, and may go once they hold nothing, or have had their time. Only
then is the number lowered, so no request is cut, and what has not gone yet can be had back. A Deployment
takes away those that are cheapest to delete, which we say by an annotation; a StatefulSet those with the
highest number, whatever they do.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import takewhile


@dataclass(frozen=True, slots=True)
class Place:
    """One pod that is wanted."""

    uid: str
    name: str
    is_ready: bool
    busy: int
    """Slots in use [1]."""
    answers: bool = True
    """Whether it answers its probe; a ready one may hang."""
    leaving_since: float | None = None
    """When it was chosen to go [s, monotonic]; None if it was not."""


@dataclass(frozen=True, slots=True)
class Departure:
    """What to do now."""

    leaving: tuple[str, ...]
    """Uids of those that get nothing new from now on, and stay chosen."""
    gone: tuple[str, ...]
    """Uids of those that are to be deleted with the step that is made now."""
    replicas: int
    """The number to which it may be lowered now [1]."""


def plan_departure(
    places: Sequence[Place], replicas: int, wanted: int, now: float, drain_max: float, is_ordered: bool
) -> Departure:
    """Plan the way from `replicas`, as they are asked for, down to `wanted`.

    Parameters
    ----------
    places : sequence of Place
        The pods there are; there may be fewer than `replicas`, or more for a moment.
    replicas, wanted : int
        What is asked for, and what shall be [1].
    now : float
        [s, monotonic]
    drain_max : float
        Who was chosen so long ago goes whatever it holds [s].
    is_ordered : bool
        Whether those with the highest numbers go first (StatefulSet), not the cheapest.
    """
    surplus = max(0, replicas - wanted)
    missing = min(surplus, max(0, replicas - len(places)))  # never came about, so nobody goes
    in_order = sorted(places, key=_by_number) if is_ordered else sorted(places, key=_by_cost)
    on_their_way = max(0, len(places) - replicas)  # let go before, and not deleted yet
    chosen = in_order[on_their_way : on_their_way + surplus - missing]
    may_go = partial(_may_go, now=now, drain_max=drain_max)
    gone = list(takewhile(may_go, chosen) if is_ordered else filter(may_go, chosen))
    leaving = tuple(place.uid for place in chosen if place.is_ready)
    return Departure(leaving, tuple(place.uid for place in gone), replicas - missing - len(gone))


def _may_go(place: Place, now: float, drain_max: float) -> bool:
    had_its_time = place.leaving_since is not None and now - place.leaving_since >= drain_max
    return not place.is_ready or place.busy == 0 or had_its_time


def _by_cost(place: Place) -> tuple[bool, bool, bool, int, str]:
    """Those that are not ready first, then those that hang, those chosen already, and the least busy."""
    return place.is_ready, place.answers, place.leaving_since is None, place.busy, place.name


def _by_number(place: Place) -> tuple[int, str]:
    number = re.search(r"-(\d+)$", place.name)
    return -int(number[1]) if number else 0, place.name
