"""Looks at the fleet once a second, and keeps what it saw."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from load.trial.controllers import Controller
from load.trial.fleet import Fleet
from load.trial.troubles import Troubles

_INTERVAL = 1.0  # [s]


@dataclass(frozen=True, slots=True)
class Look:
    """What there was, `time` [s] after the first request."""

    time: float
    desired: int
    """Asked for by whoever leads [1]."""
    ready: int
    """Pairs that take requests [1]."""
    leaders: tuple[str, ...]
    """Controllers that say that they lead."""
    trouble: str


class Watch:
    """Looks until it is cancelled."""

    def __init__(self, fleet: Fleet, controllers: Sequence[Controller], troubles: Troubles) -> None:
        self._fleet, self._controllers, self._troubles = fleet, controllers, troubles
        self.looks: list[Look] = []

    async def run(self) -> None:
        """Look every second."""
        while True:
            leads = await asyncio.gather(*(each.leads() for each in self._controllers))
            leaders = (each.asks_as for each, does in zip(self._controllers, leads, strict=True) if does)
            self.looks.append(
                Look(
                    self._troubles.elapsed(),
                    self._fleet.desired,
                    len(self._fleet.ready),
                    tuple(leaders),
                    self._troubles.now,
                )
            )
            await asyncio.sleep(_INTERVAL)
