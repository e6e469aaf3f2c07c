"""The last intervals of a door, kept for whoever reads them."""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from secrets import token_hex

from autoscaler.domain import Observation
from autoscaler.ports import Clock
from autoscaler.telemetry.demand.counters import Totals
from autoscaler.telemetry.demand.report import DemandReport, IntervalReport, PoolReport

INTERVAL = 1.0
"""Fine enough to be laid into anybody's control intervals [s]."""
KEPT_MAX = 600
"""So many intervals can be caught up with [1]: ten minutes."""
LAST_WORD = 5.0
"""A process that ends waits at most so long for its readers to hear of it [s]."""
_READS_MISSED = 2.0
"""Who has not read for so many times its usual pause does not read any more [1]."""
_READERS_MAX = 100
"""So many readers are remembered at once [1]."""


@dataclass(frozen=True, slots=True)
class PoolNow:
    """What the ledger of a pool says at this moment [1]."""

    replicas_ready: int
    slots: int
    busy: int


@dataclass(frozen=True, slots=True)
class PoolSource:
    """Where one pool is observed."""

    observe: Callable[[float, float], Observation]
    """(now, wall_time) -> what came since the last call."""
    now: Callable[[], PoolNow]


@dataclass(frozen=True, slots=True)
class _Kept:
    sequence: int
    ended_at: float
    observations: Mapping[str, Observation]


@dataclass(slots=True)
class _Reader:
    """Somebody who reads every now and then."""

    read_at: float
    pause: float = LAST_WORD / _READS_MISSED
    """Between the last two times [s]."""

    def reads_still(self, now: float) -> bool:
        return now - self.read_at <= _READS_MISSED * self.pause


class RecentDemand:
    """Closes an interval of every pool each second, and tells the last ones.

    Parameters
    ----------
    pools : mapping of str to PoolSource
        By name.
    clock : Clock
        The time.
    not_ready : callable
        Why the door takes no requests now; empty if it does.
    leaving : callable
        Whether it will end soon.
    incarnation : str or None
        Tells this process from all others; None makes one up.
    """

    def __init__(
        self,
        pools: Mapping[str, PoolSource],
        clock: Clock,
        not_ready: Callable[[], list[str]],
        leaving: Callable[[], bool],
        incarnation: str | None = None,
    ) -> None:
        self._pools = dict(pools)
        self._clock = clock
        self._not_ready, self._leaving = not_ready, leaving
        self._kept: deque[_Kept] = deque(maxlen=KEPT_MAX)
        self._sequence, self._closed_at = 0, clock.now()
        self.totals = {name: Totals() for name in pools}
        """By pool, since the start."""
        self._readers: dict[str, _Reader] = {}
        self._was_read = asyncio.Event()
        self.incarnation = incarnation or token_hex(8)

    async def run(self) -> None:
        """Close an interval every second, for ever."""
        due = self._clock.now()
        while True:
            due = max(due + INTERVAL, self._clock.now())
            await asyncio.sleep(due - self._clock.now())
            self.close()

    def close(self) -> None:
        """End an interval of every pool, if any time has passed since the last one."""
        now, wall_time = self._clock.now(), self._clock.wall_time()
        if now <= self._closed_at:
            return
        self._closed_at = now
        seen = {name: pool.observe(now, wall_time) for name, pool in self._pools.items()}
        for name, each in seen.items():
            self.totals[name].add(each)
        self._sequence += 1
        self._kept.append(_Kept(self._sequence, now, seen))

    async def last_word(self) -> None:
        """End the last interval, and wait until everybody who reads has read it, or for `LAST_WORD`."""
        self.close()
        ended_at = self._clock.now()
        readers = [each for each in self._readers.values() if each.reads_still(ended_at)]
        patience = max((_READS_MISSED * each.pause for each in readers), default=0.0)
        with suppress(TimeoutError):
            async with asyncio.timeout(min(patience, LAST_WORD)):
                while any(each.read_at < ended_at for each in readers):
                    self._was_read.clear()
                    await self._was_read.wait()

    def report(
        self, since: int = 0, incarnation: str | None = None, reader: str | None = None
    ) -> DemandReport:
        """Return the intervals after number `since`; all of them, if that is of another `incarnation`.

        A `reader` with a name is waited for when this process ends.
        """
        self._note_reader(reader)
        first = since if incarnation in (None, self.incarnation) else 0
        kept = [each for each in self._kept if each.sequence > first]
        not_ready = tuple(self._not_ready())
        return DemandReport(
            incarnation=self.incarnation,
            sequence=self._sequence,
            interval=INTERVAL,
            ready=not not_ready,
            leaving=self._leaving(),
            not_ready=not_ready,
            pools={name: self._pool(name, pool, kept) for name, pool in self._pools.items()},
        )

    def _note_reader(self, reader: str | None) -> None:
        if reader is None:
            return
        now = self._clock.now()
        known = self._readers.get(reader)
        if known is not None:
            known.pause, known.read_at = now - known.read_at, now
        else:
            self._readers = {name: each for name, each in self._readers.items() if each.reads_still(now)}
            if len(self._readers) < _READERS_MAX:
                self._readers[reader] = _Reader(now)
        self._was_read.set()

    def _pool(self, name: str, pool: PoolSource, kept: list[_Kept]) -> PoolReport:
        state, now = pool.now(), self._clock.now()
        intervals = (
            IntervalReport(each.sequence, now - each.ended_at, each.observations[name]) for each in kept
        )
        return PoolReport(state.replicas_ready, state.slots, state.busy, tuple(intervals))
