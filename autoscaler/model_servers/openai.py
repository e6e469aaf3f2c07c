"""Servers of the OpenAI-compatible API: vLLM, SGLang, llama.cpp's server and others."""

from dataclasses import dataclass

import msgspec

from autoscaler.model_servers import HttpProbe
from autoscaler.tls import ClientTls


class _Model(msgspec.Struct):
    id: str
    parent: str | None = None


class _Models(msgspec.Struct):
    data: list[msgspec.Raw]


class _Sleeping(msgspec.Struct):
    is_sleeping: bool


_UNREADABLE = (msgspec.DecodeError, ValueError, RecursionError)
"""It is no JSON, of another shape, or made to be deep."""

_SLEEP_PATIENCE = 120.0
"""To move the weights of a large model to memory, or back, may take so long [s]."""


@dataclass(frozen=True, slots=True)
class ListedModel:
    """A name that a server can be asked by."""

    name: str
    parent: str | None
    """The model that this one adapts, if the server says so (LoRA at vLLM); None for one of its own."""
    said: bytes
    """All that the server says of it, as JSON."""


class _SchedulerState(msgspec.Struct):
    effective_max_running_requests_per_dp: int = 0


class _ServerInfo(msgspec.Struct):
    """What llama.cpp and SGLang say of themselves, as far as it tells how many requests they serve."""

    total_slots: int = 0
    max_running_requests: int | None = None
    internal_states: list[_SchedulerState] = []

    @property
    def slots(self) -> int:
        """Requests served at a time [1]; 0 if it is not told."""
        scheduled = sum(state.effective_max_running_requests_per_dp for state in self.internal_states)
        return self.total_slots or scheduled or self.max_running_requests or 0


_INFO_PATHS = ("/props", "/server_info", "/get_server_info")
"""Of llama.cpp, and of SGLang by either name. vLLM tells it nowhere."""


class OpenAI:
    """Ready is a server that is healthy and, if one is named, lists the model.

    Parameters
    ----------
    model : str or None
        The model that `/v1/models` must list. None asks for health only.
    timeout : float
        No answer within it, for each of the two questions, is a no [s].
    tls : ClientTls or None
        How the server is checked, if its URL is https.
    """

    def __init__(self, model: str | None = None, timeout: float = 2.0, tls: ClientTls | None = None) -> None:
        self._model = model
        self._probe = HttpProbe(timeout, tls)

    async def ready(self, url: str) -> bool:
        """Whether the server at base URL `url` is healthy, and serves the model."""
        if not await self._probe.succeeds(f"{url}/health"):
            return False
        return self._model is None or self._model in {each.name for each in await self.models(url) or ()}

    async def models(self, url: str) -> list[ListedModel] | None:
        """Return what the server at base URL `url` lists; None if it does not answer, or not like that."""
        answer = await self._probe.get(f"{url}/v1/models")
        if answer is None or not answer.is_success:
            return None
        try:
            said = msgspec.json.decode(answer.body, type=_Models).data
            return [_listed(bytes(each)) for each in said]
        except _UNREADABLE:
            return None

    async def slots(self, url: str) -> int | None:
        """Return how many requests the server at `url` serves at a time; None if it does not tell.

        llama.cpp tells its slots, SGLang what its scheduler lets run.
        """
        for path in _INFO_PATHS:
            answer = await self._probe.get(url + path)
            if answer is None:
                return None
            if not answer.is_success:
                continue
            try:
                told = msgspec.json.decode(answer.body, type=_ServerInfo).slots
            except msgspec.DecodeError:  # not JSON, or of another shape
                continue
            if told > 0:
                return told
        return None

    # -- ports.Sleeps, which vLLM has in its development mode, with --enable-sleep-mode

    async def sleep(self, url: str) -> bool:
        """Have its weights moved to the memory of the machine, and its cache dropped: level 1."""
        answer = await self._probe.post(f"{url}/sleep?level=1", b"", _SLEEP_PATIENCE)
        return answer is not None and answer.is_success

    async def wake(self, url: str) -> bool:
        """Have its weights moved back."""
        answer = await self._probe.post(f"{url}/wake_up", b"", _SLEEP_PATIENCE)
        return answer is not None and answer.is_success

    async def is_asleep(self, url: str) -> bool:
        """Whether it says so."""
        answer = await self._probe.get(f"{url}/is_sleeping")
        if answer is None or not answer.is_success:
            return False
        try:
            return msgspec.json.decode(answer.body, type=_Sleeping).is_sleeping
        except _UNREADABLE:
            return False

    async def close(self) -> None:
        """Let go of the HTTP session."""
        await self._probe.close()


def _listed(said: bytes) -> ListedModel:
    model = msgspec.json.decode(said, type=_Model)
    return ListedModel(model.id, model.parent, said)
