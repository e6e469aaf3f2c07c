"""The doors of one pool, each with a story of its own: what is known of the demand at every one of them.

Each door tells its intervals, numbered, and who it is now (its incarnation). Every interval is counted once:
the time of a door is laid out in order, and `covered_until` says how far. What is missing is not zero:

    answers              its intervals are counted
    does not answer      its last rates are carried on, for `carry` at most; then the sum is *partial*
    said that it leaves, and does not answer any more      it has ended: zero from then on
    not listed any more, and does not answer               carried on for `carry`, then forgotten
    refuses connections for `forget`                       nobody listens there: forgotten

What arrives late for a time that was carried on is not counted on top of it. A door with a new incarnation
was restarted: it counts from one again, and is the same door. Two addresses with one incarnation are one
door, which is counted at one of them; at another once it does not answer there any more. If nobody at all
was heard of within `carry`, nothing is known, and there is no observation.
"""

from collections import deque
from collections.abc import Collection
from dataclasses import dataclass, field, replace

from autoscaler.domain import Observation
from autoscaler.scaling.merge import carried_on, one_after_another, side_by_side

_LATE_SHARE, _LATE_INTERVALS = 0.5, 2.5
"""One that answers is late if its news are older than this share of the interval, and so many of its own."""


@dataclass(frozen=True, slots=True)
class MergeOptions:
    """How long what is not heard is believed to go on."""

    carry: float = 30.0
    """Last known rates of a door that does not answer are carried on so long [s]; then the sum is partial,
    and nothing is lowered on it. Longer bears longer outages, and is wrong for longer."""
    forget: float = 300.0
    """A door that refuses connections for so long is taken to be gone [s]: its machine says that nobody
    listens there. One that is silent never is, unless it is not listed any more."""

    def __post_init__(self) -> None:
        if not 0 < self.carry <= self.forget:
            raise ValueError(f"need 0 < carry <= forget, got {self.carry}, {self.forget} s")


@dataclass(frozen=True, slots=True)
class DoorInterval:
    """One interval of one door."""

    sequence: int
    ended_at: float
    """On the clock of whoever reads it [s, monotonic]."""
    observation: Observation


@dataclass(frozen=True, slots=True)
class DoorReading:
    """What a door answered."""

    incarnation: str
    intervals: tuple[DoorInterval, ...]
    """Those that are new, the oldest first."""
    slots: int = 0
    """Slots of its ready servers [1]."""
    busy: int = 0
    """Of those in use now [1]."""
    is_leaving: bool = False
    """Whether it says that it takes nothing new and will end."""


@dataclass(frozen=True, slots=True)
class DoorCounts:
    """How many doors there are in each state, and restarts so far [1]."""

    heard: int = 0
    carried: int = 0
    blind: int = 0
    """Not heard of for longer than their rates are carried."""
    restarts: int = 0


@dataclass(eq=False)
class _Door:
    listed_at: float
    incarnation: str = ""
    sequence: int = 0
    heard_at: float | None = None
    refused_since: float | None = None
    is_listed: bool = True
    is_silent: bool = True
    is_over: bool = False
    """It ended in order, or nobody listens there any more; what it adds is zero until it answers."""
    reading: DoorReading | None = None
    fresh: list[Observation] = field(default_factory=list)
    recent: deque[Observation] = field(default_factory=deque)
    """Of the last while: its rates are those that are carried on."""
    covered_until: float = 0.0
    """Its time is counted, or carried on, so far [s, monotonic]; once it has told something."""
    twin: "_Door | None" = None
    """Another address of the same process, where it is counted; None if it is counted here."""


class Doors:
    """All doors of one pool: told what each said, or that it did not; gives one observation an interval."""

    def __init__(self, options: MergeOptions, now: float) -> None:
        self._options = options
        self._doors: dict[str, _Door] = {}
        self._closed_at = now
        self._restarts = 0
        self.counts = DoorCounts()
        """As of the last `close`."""

    def __repr__(self) -> str:
        return f"<Doors {len(self._doors)} {self.counts}>"

    @property
    def addresses(self) -> list[str]:
        """Who is to be asked: those that are listed, and those that are not any more and may still answer."""
        return list(self._doors)

    def cursor(self, address: str) -> tuple[str, int]:
        """Return whose intervals up to which number are known; ("", 0) of one that never answered."""
        door = _counted_at(self._doors[address])
        return door.incarnation, door.sequence

    def slots(self) -> list[int]:
        """Return the slots of each door that has some [1]."""
        readings = [door.reading for door in self._doors.values() if door.twin is None]
        return [reading.slots for reading in readings if reading and reading.slots]

    def busy(self) -> dict[str, int]:
        """Return the slots in use by address."""
        readings = {address: _counted_at(door).reading for address, door in self._doors.items()}
        return {address: reading.busy for address, reading in readings.items() if reading}

    def listed(self, addresses: Collection[str], now: float) -> None:
        """Take in a whole list of those that there are."""
        for address in addresses:
            self._doors.setdefault(address, _Door(listed_at=now))
        for address, door in self._doors.items():
            door.is_listed = address in addresses

    def answered(self, address: str, reading: DoorReading, now: float) -> None:
        """Take in what a door said."""
        door = self._doors.get(address)
        if door is None:
            return
        door.heard_at, door.is_silent, door.is_over, door.refused_since = now, False, False, None
        door.reading, door.twin = reading, None
        twin = self._twin_of(door, reading.incarnation)
        if twin is not None and twin.is_silent:
            _take_over(door, twin)
        if door.incarnation != reading.incarnation:
            self._restarts += door.incarnation != ""
            door.incarnation, door.sequence = reading.incarnation, 0
        if twin is not None and not twin.is_silent:
            _leave_to(twin, door)
            return
        for each in reading.intervals:
            if each.sequence > door.sequence:
                door.sequence = each.sequence
                self._count(door, each)

    def unanswered(self, address: str, now: float, *, refused: bool = False) -> None:
        """Take in that a door did not answer; `refused` if its machine said that nobody listens there."""
        door = self._doors.get(address)
        if door is None:
            return
        door.is_silent = True
        door.refused_since = (now if door.refused_since is None else door.refused_since) if refused else None

    def close(self, now: float, wall_time: float) -> Observation | None:
        """End the interval: one observation of all doors together; None if nothing is known.

        Raises
        ------
        ValueError
            If no time has passed since the last one.
        """
        interval = now - self._closed_at
        if interval <= 0:
            raise ValueError(f"an interval needs length, got {interval} s")
        self._let_go(now)
        told, blind = [], 0
        for door in self._doors.values():
            blind += self._is_blind(door, now)
            seen = self._close(door, interval, now)
            if seen is not None:
                told.append(seen)
        self._closed_at = now
        self.counts = self._count_doors(blind)
        if not self._is_anybody_heard(now):
            return None
        return replace(side_by_side(told, interval, wall_time), is_partial=blind > 0)

    def _count(self, door: _Door, told: DoorInterval) -> None:
        """Count an interval, unless most of its time has been counted, or carried on, already.

        Of one that tells for the first time, or anew, only what falls into this interval counts, or just
        before it, for it may have been under way.
        """
        length = told.observation.interval
        since = door.covered_until if door.recent else self._closed_at - length
        if told.ended_at - length / 2 <= since:
            return
        door.covered_until = told.ended_at
        door.fresh.append(told.observation)
        door.recent.append(told.observation)
        length = sum(each.interval for each in door.recent)
        while length - door.recent[0].interval >= self._options.carry:
            length -= door.recent.popleft().interval

    def _close(self, door: _Door, interval: float, now: float) -> Observation | None:
        """Return what one door adds to the interval; None if it never told anything."""
        seen, door.fresh = door.fresh, []
        if not door.recent:
            return None
        own = door.recent[-1]
        gap = now - door.covered_until
        if door.is_silent or gap > max(_LATE_SHARE * interval, _LATE_INTERVALS * own.interval):
            last = one_after_another(list(door.recent))
            seen = [*seen, carried_on(last, gap)]
            door.covered_until = now
        return one_after_another(seen) if seen else carried_on(own, 0.0)

    def _let_go(self, now: float) -> None:
        """Forget the doors that are over; of those that are still listed remember just that."""
        for address, door in list(self._doors.items()):
            if not self._is_over(door, now):
                continue
            if door.is_listed:
                door.is_over, door.reading = True, None
                door.fresh.clear()
                door.recent.clear()
            else:
                del self._doors[address]
                for other in self._doors.values():
                    other.twin = None if other.twin is door else other.twin

    def _is_over(self, door: _Door, now: float) -> bool:
        """Whether it has ended, or is taken to."""
        if not door.is_silent:
            return False
        if _has_ended(door):
            return True
        if not door.is_listed and now - _last_sign(door) >= self._options.carry:
            return True
        return door.refused_since is not None and now - door.refused_since >= self._options.forget

    def _is_blind(self, door: _Door, now: float) -> bool:
        if door.twin is not None or door.is_over:
            return False
        return door.is_silent and now - _last_sign(door) >= self._options.carry

    def _is_anybody_heard(self, now: float) -> bool:
        return any(
            door.heard_at is not None and now - door.heard_at < self._options.carry
            for door in self._doors.values()
            if not door.is_over
        )

    def _twin_of(self, door: _Door, incarnation: str) -> _Door | None:
        """Return the other address at which that process is counted, if there is one."""
        for other in self._doors.values():
            if other is not door and other.twin is None and other.incarnation == incarnation:
                return other
        return None

    def _count_doors(self, blind: int) -> DoorCounts:
        there = [door for door in self._doors.values() if door.twin is None and not door.is_over]
        heard = sum(not door.is_silent for door in there)
        return DoorCounts(heard, len(there) - heard - blind, blind, self._restarts)


def _counted_at(door: _Door) -> _Door:
    """Return the address at which the process of this one is counted."""
    while door.twin is not None:
        door = door.twin
    return door


def _take_over(door: _Door, twin: _Door) -> None:
    """Count a process at `door` from now on; it has been at `twin`, and does not answer there."""
    door.incarnation, door.sequence = twin.incarnation, twin.sequence
    door.recent, door.covered_until = twin.recent, twin.covered_until
    twin.reading = None
    _leave_to(door, twin)


def _leave_to(twin: _Door, door: _Door) -> None:
    """Count nothing more at `door`: its process is counted at `twin`."""
    twin.fresh = [*door.fresh, *twin.fresh]
    door.incarnation, door.fresh, door.recent, door.twin = "", [], deque(), twin


def _has_ended(door: _Door) -> bool:
    """Whether it does not answer any more, after it said that it would leave, or was found to be gone."""
    if not door.is_silent:
        return False
    if door.is_over or (door.reading is not None and door.reading.is_leaving):
        return True
    return door.twin is not None and _has_ended(door.twin)


def _last_sign(door: _Door) -> float:
    return door.listed_at if door.heard_at is None else door.heard_at
