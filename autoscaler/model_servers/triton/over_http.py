"""Questions over HTTP: each has a path; answers are JSON of the messages, wrapped or not."""

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import msgspec

from autoscaler.model_servers import Answer, HttpProbe
from autoscaler.model_servers.triton.messages import (
    Message,
    ModelConfigRequest,
    ModelMetadataRequest,
    ModelReadyRequest,
    ModelStatisticsRequest,
    RepositoryIndexRequest,
    RepositoryModelLoadRequest,
    RepositoryModelUnloadRequest,
    ServerReadyRequest,
)
from autoscaler.model_servers.triton.transport import NotAnswered, Told
from autoscaler.tls import ClientTls

_REASON_LENGTH = 300


def _model_path(question: Any) -> str:
    version = f"/versions/{quote(question.version, safe='')}" if question.version else ""
    return f"/v2/models/{quote(question.name, safe='')}{version}"


def _repository_path(question: Any) -> str:
    return f"/v2/repository/models/{quote(question.model_name, safe='')}"


_ASKED_WITH_GET: dict[type[Message], tuple[Callable[[Any], str], str | None]] = {
    # question: path, and the field of the answer that the JSON is; None if it is the whole answer
    ModelMetadataRequest: (_model_path, None),
    ModelConfigRequest: (lambda question: f"{_model_path(question)}/config", "config"),
    ModelStatisticsRequest: (lambda question: f"{_model_path(question)}/stats", None),
}
_ASKED_WITH_POST: dict[type[Message], tuple[Callable[[Any], str], str | None]] = {
    RepositoryIndexRequest: (lambda question: "/v2/repository/index", "models"),
    RepositoryModelLoadRequest: (lambda question: f"{_repository_path(question)}/load", None),
    RepositoryModelUnloadRequest: (lambda question: f"{_repository_path(question)}/unload", None),
}
_ASKED_BY_STATUS: dict[type[Message], Callable[[Any], str]] = {
    ServerReadyRequest: lambda question: "/v2/health/ready",
    ModelReadyRequest: lambda question: f"{_model_path(question)}/ready",
}
"""The answer has no body: 2xx is yes, everything else is no (Triton says 400)."""


class OverHttp:
    """A `Transport`.

    Parameters
    ----------
    timeout : float
        No answer within it is none [s].
    tls : ClientTls or None
        How a server is checked, if its URL is https.
    """

    def __init__(self, timeout: float, tls: ClientTls | None) -> None:
        self._probe = HttpProbe(timeout, tls)

    async def ask(
        self, url: str, question: Message, answer: type[Told], patience: float | None = None
    ) -> Told:
        """Return the answer; raise NotAnswered."""
        kind = type(question)
        if kind in _ASKED_BY_STATUS:
            ready = await self._probe.succeeds(url + _ASKED_BY_STATUS[kind](question))
            return msgspec.convert({"ready": ready}, answer)
        if kind in _ASKED_WITH_GET:
            path, field = _ASKED_WITH_GET[kind]
            said = await self._probe.get(url + path(question))
        else:
            path, field = _ASKED_WITH_POST[kind]
            said = await self._probe.post(url + path(question), b"{}", patience)
        return _read(said, field, answer)

    async def close(self) -> None:
        """Let go of the HTTP session."""
        await self._probe.close()


def _read(said: Answer | None, field: str | None, answer: type[Told]) -> Told:
    if said is None:
        raise NotAnswered("no answer came in time")
    if not said.is_success:
        raise NotAnswered(_reason(said))
    try:
        shape: Any = list[Any] if field == "models" else dict[str, Any]
        told = _without_nulls(msgspec.json.decode(said.body or b"{}", type=shape))
        # Protobuf writes numbers of 64 bits as text, hence not strict.
        return msgspec.convert(told if field is None else {field: told}, answer, strict=False)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise NotAnswered(f"the answer cannot be read: {error}"[:_REASON_LENGTH]) from error


def _without_nulls(told: Any) -> Any:
    """Return what was told, less the fields that are null: they are not told."""
    if isinstance(told, dict):
        return {name: _without_nulls(value) for name, value in told.items() if value is not None}
    return [_without_nulls(value) for value in told] if isinstance(told, list) else told


def _reason(said: Answer) -> str:
    """Return what a server says of a failure: `{"error": …}`, or the status alone."""
    try:
        told = msgspec.json.decode(said.body, type=dict[str, Any]).get("error")
    except msgspec.DecodeError:
        told = None
    return f"{told}"[:_REASON_LENGTH] if told else f"status {said.status}"
