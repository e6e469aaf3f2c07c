"""Questions over gRPC, for servers that have no other port open: the messages as they are."""

from collections.abc import Callable
from functools import partial

import grpc

from autoscaler.grpc_credentials import channel_credentials
from autoscaler.model_servers.triton import wire
from autoscaler.model_servers.triton.messages import Message
from autoscaler.model_servers.triton.transport import NotAnswered, Told
from autoscaler.tls import ClientTls

_SETTINGS = [
    ("grpc.use_local_subchannel_pool", 1),  # a connection of its own
    ("grpc.enable_http_proxy", 0),
    ("grpc.enable_retries", 0),
    ("grpc.service_config_disable_resolution", 1),
]


class OverGrpc:
    """A `Transport`.

    Parameters
    ----------
    target_of : callable
        Where the server at a base URL takes gRPC, as `host:port`.
    timeout : float
        No answer within it, the connection included, is none [s].
    tls : ClientTls or None
        How a server is checked; None for plain text. Raises UsageError if its files cannot be used.
    """

    def __init__(self, target_of: Callable[[str], str], timeout: float, tls: ClientTls | None) -> None:
        if timeout <= 0:
            raise ValueError(f"need a probe timeout > 0 s, got {timeout}")
        self._target_of = target_of
        self._timeout = timeout
        self._tls = tls
        self._is_closed = False

    async def ask(
        self, url: str, question: Message, answer: type[Told], patience: float | None = None
    ) -> Told:
        """Return the answer; raise NotAnswered."""
        if self._is_closed:
            raise NotAnswered("nobody is asked any more")
        async with self._channel(self._target_of(url)) as channel:
            call: grpc.aio.UnaryUnaryMultiCallable[Message, Told] = channel.unary_unary(
                wire.method_of(question),
                request_serializer=wire.written,
                response_deserializer=partial(wire.read, question=question, answer=answer),
            )
            try:
                return await call(question, timeout=patience or self._timeout)
            except grpc.aio.AioRpcError as error:
                raise NotAnswered(error.details() or error.code().name) from error

    async def close(self) -> None:
        """Answer nothing from now on; there are no connections between two questions."""
        self._is_closed = True

    def _channel(self, target: str) -> grpc.aio.Channel:
        if self._tls is None:
            return grpc.aio.insecure_channel(target, options=_SETTINGS)
        named = [("grpc.ssl_target_name_override", self._tls.server_name)] if self._tls.server_name else []
        # Read for each question, so that a renewed certificate is in force at once.
        return grpc.aio.secure_channel(target, channel_credentials(self._tls), options=_SETTINGS + named)
