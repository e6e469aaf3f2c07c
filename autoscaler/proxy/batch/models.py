"""What is known of the models of a pool: whether, and in how many rows, their requests may be merged.

A replica is asked about a model when the first request for it comes, and again now and then, for it may be
loaded anew with another configuration. Until the answer is there its requests go alone.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

import structlog

from autoscaler.domain.model import ModelDescription
from autoscaler.ports import Clock, DescribesModels, Replica
from autoscaler.proxy.batch.options import BatchingOptions

log = structlog.get_logger(__name__)

_ASKED_AGAIN = 60.0
"""So old may an answer be [s]; of a model that was not there, it is asked again as late."""

_MODELS_MAX = 1000
"""So many are remembered, and then all are forgotten [1]: names come from clients."""

_Key = tuple[str, str]


@dataclass(slots=True)
class _Known:
    asked_at: float
    description: ModelDescription | None = None
    is_unmergeable: bool = False
    """Whether it was found not to answer row by row, as it is described."""
    asking: "asyncio.Task[None] | None" = None


class Models:
    """Remembers descriptions, and asks for those that are missing.

    Parameters
    ----------
    options : BatchingOptions
        Whether to merge.
    server : DescribesModels
        How the servers are asked.
    clock : Clock
        For the age of answers.
    changed : callable
        Told when `rows_per_call` has changed.
    """

    def __init__(
        self, options: BatchingOptions, server: DescribesModels, clock: Clock, changed: Callable[[], None]
    ) -> None:
        self._options = options
        self._server = server
        self._clock = clock
        self._changed = changed
        self._known: dict[_Key, _Known] = {}
        self.rows_per_call = 0
        """The most rows that a call of any model may have, as far as is known [1]; 0: nothing is merged."""

    def rows_max(self, model: str, version: str, replicas: Callable[[], list[Replica]]) -> int:
        """Return how many rows a call of a model may have; below 2 its requests are not merged."""
        known = self._known.get((model, version))
        now = self._clock.now()
        if known is None or (known.asking is None and now - known.asked_at > _ASKED_AGAIN):
            known = self._ask(model, version, replicas(), now)
        return 0 if known is None else self._rows(known)

    def never_merge(self, model: str, version: str, why: str) -> None:
        """Leave a model unmerged until it is described otherwise than now."""
        known = self._known.get((model, version))
        if known is not None and not known.is_unmergeable:
            known.is_unmergeable = True
            log.warning("requests of this model are not merged any more", model=model, reason=why)
            self._follow()

    async def close(self) -> None:
        """Ask nothing any more."""
        asking = [known.asking for known in self._known.values() if known.asking is not None]
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)

    def _ask(self, model: str, version: str, replicas: list[Replica], now: float) -> _Known | None:
        if not replicas:
            return None
        key = (model, version)
        if key not in self._known and len(self._known) >= _MODELS_MAX:
            self._known.clear()
        known = self._known.setdefault(key, _Known(now))
        known.asked_at = now
        known.asking = asyncio.create_task(self._describe(key, known, replicas[0].url))
        return known

    async def _describe(self, key: _Key, known: _Known, url: str) -> None:
        try:
            found = await self._server.describe(url, *key)
        finally:
            known.asking = None
        if found is not None and found != known.description:
            known.description, known.is_unmergeable = found, False
            self._follow()

    def _rows(self, known: _Known) -> int:
        found, options = known.description, self._options
        if found is None or known.is_unmergeable or found.has_sequences or found.is_decoupled:
            return 0
        if found.is_batched_by_server and options.mode == "auto":
            return 0
        told = found.batch_size_max or options.rows_max or 0
        return told if options.rows_max is None else min(told, options.rows_max)

    def _follow(self) -> None:
        rows = max((self._rows(known) for known in self._known.values()), default=0)
        rows = rows if rows > 1 else 0
        if rows != self.rows_per_call:
            self.rows_per_call = rows
            self._changed()
