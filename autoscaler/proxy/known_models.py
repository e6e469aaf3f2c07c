"""The models that the servers of one pool can be asked for, by all their names.

Some names are said in the configuration; those count also while no server runs. The others the servers list
themselves: aliases, and adapters (LoRA) that one server serves beside the model that they adapt. What was
listed last holds until a server lists again, so that a pool that was scaled to zero is still found.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from autoscaler.model_servers.openai import ListedModel
from autoscaler.ports import Clock

INTERVAL, FIRST_INTERVAL = 10.0, 1.0
"""Between two looks at what servers list, and while nothing has been listed yet [s]."""
SERVERS_MAX = 64
"""More servers of a pool are not asked [1]: they are alike."""

Lister = Callable[[str], Awaitable[list[ListedModel] | None]]
"""Asks the server at a base URL what it lists; None if it does not say."""


class KnownModels:
    """The models of one pool.

    Parameters
    ----------
    named : sequence of str
        Names that the configuration says.
    lister : callable
        Asks one server.
    servers : callable
        Returns the base URLs of the servers that are ready.
    clock : Clock
        Monotonic seconds.
    """

    def __init__(
        self, named: Sequence[str], lister: Lister, servers: Callable[[], Sequence[str]], clock: Clock
    ) -> None:
        self.named = tuple(dict.fromkeys(named))
        self._lister = lister
        self._servers = servers
        self._clock = clock
        self._listed: dict[str, ListedModel] = {}
        self._looked_at: float | None = None
        self._looking = asyncio.Lock()

    def __repr__(self) -> str:
        return f"<KnownModels {' '.join(self.names)}>"

    @property
    def names(self) -> tuple[str, ...]:
        """Every name that is known, those of the configuration first."""
        return (*self.named, *(name for name in self._listed if name not in self.named))

    def entries(self) -> dict[str, bytes]:
        """Return what is said of each model, as JSON, by its name; little of one that no server listed."""
        return {name: self._entry(name) for name in self.names}

    async def run(self) -> None:
        """Ask the servers now and then, until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(INTERVAL if self._listed else FIRST_INTERVAL)

    async def look(self, age_min: float = 0.0) -> None:
        """Ask every server that is ready what it lists, unless that was done less than `age_min` [s] ago."""
        async with self._looking:
            now = self._clock.now()
            if self._looked_at is not None and now - self._looked_at < age_min:
                return
            self._looked_at = now
            said = await asyncio.gather(*map(self._lister, self._servers()[:SERVERS_MAX]))
            if listed := {model.name: model for models in said for model in models or ()}:
                self._listed = listed

    def _entry(self, name: str) -> bytes:
        if (listed := self._listed.get(name)) is not None:
            return listed.said
        return msgspec.json.encode({"id": name, "object": "model", "created": 0, "owned_by": "autoscaler"})
