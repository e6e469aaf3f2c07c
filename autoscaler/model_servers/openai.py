"""Servers of the OpenAI-compatible API: vLLM, SGLang, llama.cpp's server and others."""

import msgspec

from autoscaler.model_servers import HttpProbe
from autoscaler.tls import ClientTls


class _Model(msgspec.Struct):
    id: str


class _Models(msgspec.Struct):
    data: list[_Model]


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
        return self._model is None or self._model in await self._models(url)

    async def close(self) -> None:
        """Let go of the HTTP session."""
        await self._probe.close()

    async def _models(self, url: str) -> set[str]:
        answer = await self._probe.get(f"{url}/v1/models")
        if answer is None or not answer.is_success:
            return set()
        try:
            return {model.id for model in msgspec.json.decode(answer.body, type=_Models).data}
        except msgspec.DecodeError:  # not JSON, or of another shape
            return set()
