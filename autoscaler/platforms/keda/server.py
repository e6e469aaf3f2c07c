"""The external scaler that KEDA asks (gRPC): several ScaledObjects, one for each pool, one listener.

KEDA's operator asks every `pollingInterval` whether a pool is active, and then moves it between 0 and 1; the
HPA that KEDA makes asks every 15 s for the metric, and moves it between 1 and N. The metric is the number of
replicas that is wanted, and its target is 1 for each replica, so the HPA's quotient is that number.

The stream is for a trigger of type `external-push`: it says at once when activity changes.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any, NoReturn

import grpc
import structlog

from autoscaler.errors import UsageError
from autoscaler.grpc_credentials import listener_credentials
from autoscaler.platforms.keda import messages
from autoscaler.platforms.keda.options import KedaServerOptions
from autoscaler.platforms.keda.platform import Keda
from autoscaler.units import Address

METRIC = "desired-replicas"
"""Name of the one metric; KEDA puts a prefix before it and takes it away again."""

_CONNECTION_AGE = 30.0
"""KEDA is asked to connect anew after so long, which it does without a gap [s]: so behind one Service it
finds the program that leads now, although the one that led before is still there."""
_LAST_WORDS = 2.0
"""How long answers that are under way may take to leave when the server stops [s]."""

Context = Any  # the library hands out a class of its own, which it does not name

log = structlog.get_logger(__name__)


class KedaServer:
    """Listens, and answers for every pool that KEDA scales.

    Parameters
    ----------
    options : KedaServerOptions
        Where to listen.
    pools : mapping of str to Keda
        By name, one at least.
    """

    def __init__(self, options: KedaServerOptions, pools: Mapping[str, Keda]) -> None:
        if not pools:
            raise ValueError("need a pool that KEDA scales, got none")
        self._options, self._pools = options, dict(pools)
        self._server: grpc.aio.Server | None = None
        self._port = options.port
        self._streams: set[asyncio.Event] = set()

    def __repr__(self) -> str:
        return f"<KedaServer {self._options.host}:{self._port} pools={len(self._pools)}>"

    @property
    def port(self) -> int:
        """Where it listens; the one that the system chose if 0 was asked for."""
        return self._port

    async def start(self) -> None:
        """Listen. Raises UsageError if the address cannot be listened at, or a certificate cannot be used."""
        options = self._options
        credentials = None if options.tls is None else listener_credentials(options.tls)
        server = grpc.aio.server(
            options=[("grpc.so_reuseport", 0), ("grpc.max_connection_age_ms", int(1000 * _CONNECTION_AGE))]
        )
        server.add_generic_rpc_handlers((self._handlers(),))
        address = str(Address(options.host or "::", options.port))  # the library's word for every interface
        try:
            if credentials is None:
                self._port = server.add_insecure_port(address)
            else:
                self._port = server.add_secure_port(address, credentials)
        except RuntimeError as error:
            raise UsageError(
                f"cannot listen for KEDA at {address}; stop what listens there, or set keda.listen"
            ) from error
        self._server = server
        await server.start()

    async def stop(self) -> None:
        """End every answer."""
        server, self._server = self._server, None
        if server is not None:
            for changed in self._streams:
                changed.set()
            await server.stop(_LAST_WORDS)

    def _handlers(self) -> grpc.GenericRpcHandler:
        ref, asked = messages.ScaledObjectRef.FromString, messages.GetMetricsRequest.FromString

        def unary(answer: Any, read: Any) -> grpc.RpcMethodHandler:
            return grpc.unary_unary_rpc_method_handler(answer, read, _write)

        return grpc.method_handlers_generic_handler(
            messages.SERVICE,
            {
                "IsActive": unary(self._is_active, ref),
                "StreamIsActive": grpc.unary_stream_rpc_method_handler(self._stream_is_active, ref, _write),
                "GetMetricSpec": unary(self._metric_spec, ref),
                "GetMetrics": unary(self._metrics, asked),
            },
        )

    async def _is_active(self, ref: Any, context: Context) -> Any:
        is_active = (await self._pool(ref, context)).is_active
        if is_active is None:
            await _nobody_knows(context)
        return messages.IsActiveResponse(result=is_active)

    async def _stream_is_active(self, ref: Any, context: Context) -> AsyncIterator[Any]:
        """Say whether the pool is active, now and whenever that changes; end once nobody knows any more."""
        pool = await self._pool(ref, context)
        log.info("KEDA listens", scaled_object=f"{ref.namespace}/{ref.name}")
        changed, said = pool.watch(), None
        self._streams.add(changed)
        try:
            while self._server is not None:
                if pool.is_active is None and said is not None:
                    await _nobody_knows(context)
                if pool.is_active is not None and pool.is_active != said:
                    said = pool.is_active
                    yield messages.IsActiveResponse(result=said)
                await changed.wait()
                changed.clear()
        finally:
            self._streams.discard(changed)
            pool.unwatch(changed)

    async def _metric_spec(self, ref: Any, context: Context) -> Any:
        await self._pool(ref, context)
        return messages.metric_spec(METRIC, target=1)

    async def _metrics(self, asked: Any, context: Context) -> Any:
        pool = await self._pool(asked.scaledObjectRef, context)
        if asked.metricName != METRIC:
            text = f"there is no metric {asked.metricName[:100]!r}; there is {METRIC}"
            await context.abort(grpc.StatusCode.NOT_FOUND, text)
        if pool.desired is None:
            await _nobody_knows(context)
        return messages.metric_value(METRIC, pool.desired)

    async def _pool(self, ref: Any, context: Context) -> Keda:
        """Return the pool that a ScaledObject means."""
        name = ref.scalerMetadata.get("pool", "")
        if name in self._pools:
            return self._pools[name]
        if not name and len(self._pools) == 1:
            return next(iter(self._pools.values()))
        known = ", ".join(sorted(self._pools))
        said = f"names no pool {name[:100]!r}" if name else "names no pool"
        text = f"{ref.namespace}/{ref.name} {said}; set `pool` in the trigger's metadata to one of {known}"
        log.warning("KEDA asks for a pool that is not here", why=text)
        return await _abort(context, grpc.StatusCode.NOT_FOUND, text)


async def _nobody_knows(context: Context) -> NoReturn:
    text = "no decision has been taken here: the mode is recommend, or another one leads; the fleet stays"
    await _abort(context, grpc.StatusCode.UNAVAILABLE, text)


async def _abort(context: Context, code: grpc.StatusCode, text: str) -> NoReturn:
    await context.abort(code, text)
    raise RuntimeError("the library ends a call that is aborted")


def _write(message: Any) -> bytes:
    return bytes(message.SerializeToString())
