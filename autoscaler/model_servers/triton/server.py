"""What is asked of Triton, over HTTP or gRPC.

Triton says "not ready" with 400, not 503; here everything but a yes is a no. A server is "not ready" as a
whole also while one of its models is unloaded, unless it was started with
`--strict-readiness=false`.
"""

import asyncio
from collections.abc import Callable
from typing import Self

import structlog

from autoscaler.domain.model import ModelDescription, SizeTime
from autoscaler.model_servers.triton.described import (
    described,
    described_by_metadata,
    slots_of,
    times_by_size,
)
from autoscaler.model_servers.triton.messages import (
    Empty,
    Message,
    ModelConfigRequest,
    ModelConfigResponse,
    ModelMetadataRequest,
    ModelMetadataResponse,
    ModelReadyRequest,
    ModelStatisticsRequest,
    ModelStatisticsResponse,
    ReadyResponse,
    RepositoryIndexRequest,
    RepositoryIndexResponse,
    RepositoryModelLoadRequest,
    RepositoryModelUnloadRequest,
    ServerReadyRequest,
)
from autoscaler.model_servers.triton.over_http import OverHttp
from autoscaler.model_servers.triton.transport import NotAnswered, Transport
from autoscaler.tls import ClientTls

LOAD_TIMEOUT = 900.0
"""The server answers when the model is loaded [s]; weights of a hundred gigabytes take minutes."""
_LOAD_PAUSE = 10.0
"""Between two tries to load a model [s]."""
_HERE_OR_COMING = ("READY", "LOADING")

log = structlog.get_logger(__name__)


class Triton:
    """Ready is a server that is ready and, if one is named, whose model is ready.

    Parameters
    ----------
    model : str or None
        The model that must be loaded too. None asks the server only, which by Triton's default is
        ready once all models of its repository are.
    timeout : float
        No answer within it, for each of the two questions, is a no [s].
    tls : ClientTls or None
        How the server is checked, if its URL is https.
    load_model : bool
        Have a server load the model if it is there and not loaded (needs explicit model control). It is
        loaded again should somebody unload it.
    merges : bool
        Whether requests are merged before they are sent, so that each slot holds a whole batch.
    transport : Transport or None
        How it is asked; None for HTTP.
    """

    def __init__(
        self,
        model: str | None = None,
        timeout: float = 2.0,
        tls: ClientTls | None = None,
        *,
        load_model: bool = False,
        merges: bool = False,
        transport: Transport | None = None,
    ) -> None:
        if load_model and model is None:
            raise ValueError("load_model needs a model; name it, or leave load_model false")
        self._model = model
        self._load_model = load_model
        self._merges = merges
        self._transport = transport or OverHttp(timeout, tls)
        self._loads: dict[str, asyncio.Task[None]] = {}

    @classmethod
    def over_grpc(
        cls,
        target_of: Callable[[str], str],
        model: str | None = None,
        timeout: float = 2.0,
        tls: ClientTls | None = None,
        *,
        load_model: bool = False,
        merges: bool = False,
    ) -> Self:
        """Return the same for servers whose HTTP port is closed; `target_of` is where one takes gRPC."""
        from autoscaler.model_servers.triton.over_grpc import OverGrpc  # noqa: PLC0415 - loads grpc, which is large

        transport = OverGrpc(target_of, timeout, tls)
        return cls(model, load_model=load_model, merges=merges, transport=transport)

    async def ready(self, url: str) -> bool:
        """Whether the server at base URL `url`, and the model, are ready."""
        if not await self._says_ready(url, ServerReadyRequest()):
            return False
        if self._model is None or await self._says_ready(url, ModelReadyRequest(self._model)):
            return True
        if self._load_model:
            self._load_soon(url, self._model)
        return False

    async def slots(self, url: str) -> int | None:
        """Return how many requests one server shall have at a time, by the configuration of its model.

        None if it does not tell, or no model is named.
        """
        model = None if self._model is None else await self.describe(url, self._model)
        return None if model is None else slots_of(model, merged_here=self._merges)

    async def describe(self, url: str, model: str, version: str = "") -> ModelDescription | None:
        """Return what the server at `url` says of a model it has loaded; None if it does not.

        Of a server that has no configurations, only KServe v2's metadata: names, types and shapes.
        """
        try:
            told = await self._transport.ask(url, ModelConfigRequest(model, version), ModelConfigResponse)
            return described(told.config, version)
        except NotAnswered:
            pass
        try:
            metadata = await self._transport.ask(
                url, ModelMetadataRequest(model, version), ModelMetadataResponse
            )
        except NotAnswered:
            return None
        return described_by_metadata(metadata, version)

    async def statistics(self, url: str, model: str) -> tuple[SizeTime, ...]:
        """Return how long batches of each size took there; empty if none ran, or it does not tell."""
        try:
            question = ModelStatisticsRequest(model)
            return times_by_size(await self._transport.ask(url, question, ModelStatisticsResponse))
        except NotAnswered:
            return ()

    async def index(self, url: str) -> dict[str, str]:
        """Return the state of each model in the repository; empty if the server does not tell.

        READY, LOADING, UNLOADING, UNAVAILABLE, or empty for one that was never loaded. Of several versions
        the most usable counts.
        """
        try:
            answer = await self._transport.ask(url, RepositoryIndexRequest(), RepositoryIndexResponse)
        except NotAnswered:
            return {}
        states: dict[str, str] = {}
        for model in answer.models:
            if states.get(model.name) not in _HERE_OR_COMING:
                states[model.name] = model.state
        return states

    async def load(self, url: str, model: str) -> str | None:
        """Have the server load a model; return None once it is there, else why it is not."""
        return await self._change(url, RepositoryModelLoadRequest(model))

    async def unload(self, url: str, model: str) -> str | None:
        """Have the server let go of a model, once what runs on it is over; None, or why it does not."""
        return await self._change(url, RepositoryModelUnloadRequest(model))

    async def close(self) -> None:
        """Let go of connections, and of loads under way: the servers go on with them."""
        loads = list(self._loads.values())
        for load in loads:
            load.cancel()
        await asyncio.gather(*loads, return_exceptions=True)
        await self._transport.close()

    async def _says_ready(self, url: str, question: Message) -> bool:
        try:
            return (await self._transport.ask(url, question, ReadyResponse)).ready
        except NotAnswered:
            return False

    async def _change(self, url: str, question: Message) -> str | None:
        try:
            await self._transport.ask(url, question, Empty, LOAD_TIMEOUT)
        except NotAnswered as refusal:
            return str(refusal)
        return None

    def _load_soon(self, url: str, model: str) -> None:
        """Load it beside the probes, which come more often than a load takes; one at a time."""
        if url not in self._loads:
            self._loads[url] = load = asyncio.create_task(self._load_unless_there(url, model))
            load.add_done_callback(lambda _: self._loads.pop(url, None))

    async def _load_unless_there(self, url: str, model: str) -> None:
        if (await self.index(url)).get(model) not in _HERE_OR_COMING:
            log.info("loading a model", url=url, model=model)
            reason = await self.load(url, model)
            if reason is not None:
                log.warning("model could not be loaded", url=url, model=model, reason=reason)
        await asyncio.sleep(_LOAD_PAUSE)
