"""Which replicas to start, to take back from draining, and to end, so that the fleet has the wanted size.

Up: a draining replica is ready at once and costs nothing, so those come back first; then those that sleep are
woken, which is sooner than a start. Down: what has done
the least work for its start goes first: replicas that only wait to be restarted, then starting ones, the
youngest first, then ready ones, idle before busy. A replica that ends holds its place (and the memory of
its GPU) until its last process is gone.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum


class State(StrEnum):
    """Where a replica is in its life."""

    BACKING_OFF = "backing_off"
    """It failed, and waits to be started again; counts as starting."""
    STARTING = "starting"
    READY = "ready"
    DRAINING = "draining"
    """It finishes what it holds; it can still be taken back."""
    ASLEEP = "asleep"
    """It finished what it held, and let its GPU go; it can be woken. It holds its place."""
    STOPPING = "stopping"
    """Its processes are being ended; counts as draining, but never comes back."""


ORDERED = (State.BACKING_OFF, State.STARTING, State.READY)
"""Those that are or will be of use."""


@dataclass(frozen=True, slots=True)
class Member:
    """One place of the fleet that is in use."""

    place: int
    state: State
    busy: int = 0
    """Slots in use [1]."""
    age: float = 0.0
    """Since it was ordered [s]."""


@dataclass(frozen=True, slots=True)
class FleetPlan:
    """What to do, in this order."""

    take_back: tuple[int, ...] = ()
    """Places whose replica drains and shall not."""
    wake: tuple[int, ...] = ()
    """Places whose replica sleeps and shall not."""
    end: tuple[int, ...] = ()
    """Places whose replica shall go."""
    start: int = 0
    """New replicas [1]."""


def plan_fleet(members: Sequence[Member], desired: int, places: int | None) -> FleetPlan:
    """Say how `members` become `desired` replicas, ready and starting together.

    Parameters
    ----------
    members : sequence of Member
        Every place in use, in any state.
    desired : int
        Replicas wanted [1].
    places : int or None
        Replicas there is room for, those that end included [1]; None is no limit.
    """
    ordered = [member for member in members if member.state in ORDERED]
    if len(ordered) >= desired:
        last = sorted(ordered, key=_worth)[: len(ordered) - desired]
        return FleetPlan(end=tuple(member.place for member in last))
    missing = desired - len(ordered)
    # The busiest would hold its place longest, and has the warmest caches.
    draining = sorted(
        (member for member in members if member.state is State.DRAINING), key=lambda member: -member.busy
    )
    back = tuple(member.place for member in draining[:missing])
    missing -= len(back)
    asleep = sorted(member.place for member in members if member.state is State.ASLEEP)
    wake = tuple(asleep[:missing])
    room = missing if places is None else max(places - len(members), 0)
    return FleetPlan(take_back=back, wake=wake, start=min(missing - len(wake), room))


def free_place(taken: Collection[int], gpus: int, replicas_per_gpu: int) -> int | None:
    """Return a place on the GPU with the fewest replicas, the lowest in number; None if all are taken.

    Place p is on GPU p mod `gpus`. Without GPUs it is the lowest free number.
    """
    if not gpus:
        return next(place for place in range(len(taken) + 1) if place not in taken)
    replicas_on = Counter(place % gpus for place in taken)
    free = [place for place in range(gpus * replicas_per_gpu) if place not in taken]
    return min(free, key=lambda place: (replicas_on[place % gpus], place), default=None)


def _worth(member: Member) -> tuple[int, int, float]:
    """Order of ending, the first to end first."""
    return (ORDERED.index(member.state), member.busy, member.age)
