"""Batching of one pool: reads requests on their way in, and begins the calls that several share."""

import asyncio
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from multiprocessing import get_context
from typing import TYPE_CHECKING

from autoscaler.domain import Mergeable
from autoscaler.kserve.infer import InferRequest
from autoscaler.kserve.tensor import Malformed, NotMergeable
from autoscaler.ports import Clock, DescribesModels
from autoscaler.proxy.answers import Refusal, Refused
from autoscaler.proxy.batch.batch import Batch, Means
from autoscaler.proxy.batch.item import (
    Item,
    ModelName,
    http_item,
    json_length,
    model_at,
    read_item,
)
from autoscaler.proxy.batch.models import Models
from autoscaler.proxy.batch.options import BatchingOptions
from autoscaler.proxy.drive import PoolDrive
from autoscaler.proxy.onward import Onward
from autoscaler.proxy.upstream import Upstream

if TYPE_CHECKING:
    from autoscaler.proxy.batch.check import Check

_LARGE = 64 * 1024
"""JSON longer than this is read in another process [bytes]: it would hold up everybody for milliseconds."""

_TOO_LARGE = 16 * 1024 * 1024
"""JSON longer than this is not read at all, and its request goes alone [bytes]."""

Wish = tuple[Item, Mergeable]


class Batching:
    """Merges the requests of one pool.

    Parameters
    ----------
    options : BatchingOptions
        Whether to merge, and how.
    server : DescribesModels
        How the replicas are asked what their models take.
    model : str or None
        The model that the pool is configured for, asked about at once; others as they are asked for.
    clock : Clock
        The one that the drive uses.
    batched : callable
        Told the rows of each call.
    """

    def __init__(
        self,
        options: BatchingOptions,
        server: DescribesModels,
        model: str | None,
        clock: Clock,
        batched: Callable[[int], None] = lambda rows: None,
    ) -> None:
        self._options = options
        self._model = model
        self._clock = clock
        self._batched = batched
        self._models = Models(options, server, clock, self._rows_changed)
        self.check = _check(options.check_ratio)
        self._means: Means | None = None
        self._readers: ProcessPoolExecutor | None = None

    def use(self, drive: PoolDrive, upstream: Upstream) -> None:
        """Work with this drive, whose replicas are reached by `upstream`."""
        self._means = Means(drive, upstream, self._clock, self._models.never_merge, self.check)

    @property
    def rows_per_call(self) -> int:
        """The most rows that one call may have; 0 while nothing is merged [1]."""
        return self._models.rows_per_call

    def replica_ready(self) -> None:
        """There is a replica to ask."""
        if self._model is not None:
            self._rows_max(self._model, "")

    async def close(self) -> None:
        """Let go of everything."""
        await self._models.close()
        if self._readers is not None:
            self._readers.shutdown(wait=False, cancel_futures=True)

    # -- on the way in

    async def wish(self, onward: Onward) -> Wish | None:
        """Return how an HTTP request can be merged; None if it must go alone. May raise `Refused`."""
        at = model_at(onward.method, onward.target) if onward.body.complete else None
        if at is None:
            return None
        rows_max = self._rows_max(at.model, at.version)
        if rows_max <= 1:
            return None
        try:
            body, length = onward.body.held(), json_length(onward.headers.items())
            long = len(body) if length is None else min(length, len(body))
            if long > _TOO_LARGE:
                return None
            asked = (
                read_item(at, body, length)
                if long <= _LARGE
                else await self._read_elsewhere(at, body, length)
            )
            item = http_item(at, asked, onward.headers.items())
            return item, item.mergeable(rows_max)
        except Malformed as bad:
            raise _refused(bad) from bad
        except NotMergeable:
            return None

    def wish_of(self, read: Callable[[], Item], model: str, version: str) -> Wish | None:
        """Return how a request for a model, which `read` reads, can be merged; None if it must go alone.

        May raise `Refused`.
        """
        rows_max = self._rows_max(model, version)
        if rows_max <= 1:
            return None
        try:
            item = read()
            return item, item.mergeable(rows_max)
        except Malformed as bad:
            raise _refused(bad) from bad
        except NotMergeable:
            return None

    # -- with a slot

    def batch(self, items: Sequence[Item]) -> Batch:
        """Return a call for some items, which is to be begun."""
        if self._means is None:
            raise RuntimeError("no upstream is known yet")
        batch = Batch(self._means, items)
        self._batched(batch.rows)
        return batch

    def _rows_max(self, model: str, version: str) -> int:
        if self._means is None:
            return 0
        return self._models.rows_max(model, version, self._means.drive.ready_replicas)

    def _rows_changed(self) -> None:
        if self._means is not None:
            self._means.drive.offer_anew()

    async def _read_elsewhere(self, at: ModelName, body: bytes, length: int | None) -> InferRequest:
        if self._readers is None:
            self._readers = ProcessPoolExecutor(
                1, mp_context=get_context("spawn"), initializer=_leave_ctrl_c_to_the_parent
            )
        try:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._readers, partial(_read, at, body, length))
        except BrokenExecutor as broken:
            self._readers = None
            raise NotMergeable("the process that reads large requests ended") from broken


def _leave_ctrl_c_to_the_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _check(ratio: float) -> "Check | None":
    """Return what compares so many of all batches, if it shall."""
    if not ratio:
        return None
    from autoscaler.proxy.batch.check import Check  # noqa: PLC0415 - NumPy is large, and needed here only

    return Check(ratio)


def _refused(bad: Malformed) -> Refused:
    return Refused(Refusal(400, "malformed_tensor", f"The request contradicts itself: {bad}."))


def _read(at: ModelName, body: bytes, length: int | None) -> InferRequest:
    """Read a request so that it can be sent to another process."""
    read = read_item(at, body, length)
    return replace(read, inputs=tuple(replace(tensor, data=bytes(tensor.data)) for tensor in read.inputs))
