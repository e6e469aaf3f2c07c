"""What is wrong around a pool now, and since when: a platform, a door, an exporter that does not answer.

Each of them says what is wrong with it at the moment, and forgets that once it is over. When it began nobody
remembers but this: it looks every second. What is over is told by the log.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass

LOOK_INTERVAL = 1.0
"""Between two looks [s]."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """What is wrong at one place."""

    where: str
    """`platform`, or the address of a door."""
    text: str
    """As it is now, for a person."""
    began_at: float
    """When something was first wrong there, and has been since [s, monotonic]."""


class TroubleWatch:
    """Remembers when the troubles of one pool began.

    Parameters
    ----------
    ask : callable
        Returns what is wrong now, by place.
    now : callable
        The time [s, monotonic].
    """

    def __init__(self, ask: Callable[[], Mapping[str, str]], now: Callable[[], float]) -> None:
        self._ask, self._now = ask, now
        self._standing: dict[str, Trouble] = {}

    def __repr__(self) -> str:
        return f"<TroubleWatch {' '.join(self._standing) or 'all is well'}>"

    @property
    def standing(self) -> tuple[Trouble, ...]:
        """What is wrong at this moment, the oldest first."""
        self.look()
        return tuple(self._standing.values())

    def look(self) -> None:
        """Ask once."""
        now, wrong = self._now(), self._ask()
        began = {where: self._standing[where].began_at for where in self._standing if where in wrong}
        began |= {where: now for where in wrong if where not in began}
        self._standing = {where: Trouble(where, wrong[where], at) for where, at in began.items()}

    async def run(self) -> None:
        """Look for ever."""
        while True:
            self.look()
            await asyncio.sleep(LOOK_INTERVAL)
