"""One call to a replica: the request out, the answer in.

A call that breaks says how (`connect`, `reset`, `truncated`, `protocol`, `late`, `local`) and whether the
request may have executed. It provably did not when the connection was refused, or when one that had idled was
found closed: the server had closed it, the news and our request crossed on the way. That shows within a round
trip; a connection that breaks later may have broken at work.
"""

import asyncio
import logging
from collections import Counter
from functools import partial
from http import HTTPStatus

import aiohttp
from aiohttp import hdrs
from multidict import CIMultiDict

from autoscaler.ports import Replica
from autoscaler.proxy.answers import Executed
from autoscaler.proxy.body import RequestBody
from autoscaler.proxy.call import Call, CallBroke, Wire
from autoscaler.proxy.descriptors import OUT_OF_DESCRIPTORS
from autoscaler.proxy.headers import RESPONSE_FIELDS_REPLACED, BadHead, end_to_end
from autoscaler.proxy.options import ProxyOptions, RouteOptions
from autoscaler.proxy.quiet_log import QuietLog
from autoscaler.proxy.time_limit import TimeLimit
from autoscaler.proxy.upstream_session import UpstreamSession
from autoscaler.tls import client_context, watch

_STALE_WINDOW = 0.25
"""A reused connection that breaks within this after the request was written had been closed before [s]."""


class Upstream:
    """Makes the calls of one route. Raises UsageError if a certificate cannot be used."""

    def __init__(self, options: ProxyOptions, route: RouteOptions) -> None:
        self._route = route
        context = None if route.tls is None else client_context(route.tls)
        self.certificates = watch(route.tls, context)
        """The files by which servers are checked, and we show who we are."""
        self._live: dict[Wire, str] = {}
        self._no_descriptors = QuietLog(logging.getLogger("autoscaler.proxy"))
        verify = context or True
        self._session = UpstreamSession(options, verify, keepalive_timeout=options.upstream_keepalive)
        self._session_of_fresh_connections = UpstreamSession(options, verify, force_close=True)

    async def close(self) -> None:
        """Close every connection."""
        await self._session.close()
        await self._session_of_fresh_connections.close()

    async def call(
        self,
        method: str,
        replica: Replica,
        target: str,
        headers: CIMultiDict[str],
        body: RequestBody,
        *,
        fresh_connection: bool = False,
        upgrade: bool = False,
    ) -> Call:
        """Send the request; return when the head of the answer is here.

        Connections that idle are used again, unless a `fresh_connection` is asked for, or an `upgrade` to a
        WebSocket, which takes its connection with it. The caller owns the `Call` from then on. When this is
        cancelled, the connection is closed at once.

        Raises
        ------
        CallBroke
            If no answer began.
        """
        session = self._session_of_fresh_connections if fresh_connection or upgrade else self._session
        wire = Wire(_asking_for_websocket(headers) if upgrade else headers)
        self._live[wire] = replica.id
        try:
            with TimeLimit(self._route.first_byte_timeout) as limit:
                if not body.complete:
                    body.on_progress = limit.begin_again  # counted from the last progress of the upload
                response = await session.ask(method, replica.url, target, wire, body.payload())
        except BaseException as broken:
            wire.abort()
            del self._live[wire]
            if (translated := _translate(broken, wire, asyncio.get_running_loop().time())) is None:
                raise
            if translated.how == "local":
                self._no_descriptors.warning(
                    "no descriptor is left; raise the limit of open files (ulimit -n)"
                )
            raise translated from broken
        finally:
            body.on_progress = None
        try:
            headers = _check_head(response, upgrade)
        except CallBroke:
            response.close()
            del self._live[wire]
            raise
        if response.status != HTTPStatus.SWITCHING_PROTOCOLS:
            self._limit_silence(response)
        return Call(response, headers, wire, partial(self._is_over, wire))

    def _is_over(self, wire: Wire) -> None:
        self._live.pop(wire, None)

    def live_calls(self) -> Counter[str]:
        """Count the calls that are under way, by replica id."""
        return Counter(self._live.values())

    def _limit_silence(self, response: aiohttp.ClientResponse) -> None:
        """Limit the pauses of the answer; the clock stands while the client is the slow one."""
        connection = response.connection
        if connection is not None and connection.protocol is not None:
            connection.protocol.read_timeout = self._route.idle_timeout
            connection.protocol.start_timeout()


def _asking_for_websocket(headers: CIMultiDict[str]) -> CIMultiDict[str]:
    asking = headers.copy()
    asking.extend({hdrs.CONNECTION: "Upgrade", hdrs.UPGRADE: "websocket"})
    return asking


def _check_head(response: aiohttp.ClientResponse, upgrade: bool) -> CIMultiDict[str]:
    """Return the fields to pass on; raise `CallBroke` if there is no way to pass the answer on."""
    if response.status == HTTPStatus.SWITCHING_PROTOCOLS:
        if not upgrade:
            raise CallBroke("protocol", "maybe", "The model server switched protocols, unasked.")
        if response.headers.get(hdrs.UPGRADE, "").strip().lower() != "websocket":
            raise CallBroke("protocol", "maybe", "The model server switched to another protocol than asked.")
    try:
        return end_to_end(response.raw_headers, without=RESPONSE_FIELDS_REPLACED)
    except BadHead as bad:
        text = f"The model server's answer cannot be passed on: {bad}."
        raise CallBroke("protocol", "maybe", text) from bad


def _translate(broken: BaseException, wire: Wire, now: float) -> CallBroke | None:
    """Say what an exception of the client means for the request; None if it is none of the client's."""
    executed: Executed = "maybe"
    how, text = "reset", "The connection to the model server broke."
    match broken:
        case aiohttp.ClientConnectorError() if broken.errno in OUT_OF_DESCRIPTORS:
            how, executed, text = "local", "no", "The proxy has no room for another connection now."
        case aiohttp.ConnectionTimeoutError() | aiohttp.ClientConnectorError():
            how, executed, text = "connect", "no", "The model server does not accept connections."
        case TimeoutError():
            how, text = "late", "The model server did not answer in time."
        case aiohttp.ServerDisconnectedError() if not isinstance(broken.message, str):
            how, text = "truncated", "The model server broke off in the head of its answer."
        case aiohttp.ServerDisconnectedError() | aiohttp.ClientOSError() | ConnectionError():
            if wire.reused and now - wire.written_at < _STALE_WINDOW:
                executed = "no"
        case aiohttp.ClientResponseError():
            how, text = "protocol", "The model server did not answer in HTTP."
        case aiohttp.ClientError() | OSError():
            pass
        case _:
            return None
    return CallBroke(how, executed, text)
