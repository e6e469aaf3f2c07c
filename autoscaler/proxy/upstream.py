"""One call to a replica: the request out, the answer in.

A call that breaks says how (`connect`, `reset`, `truncated`, `protocol`, `late`, `local`) and whether the
request may have executed. It provably did not when the connection was refused, or when one that had idled was
found closed: the server had closed it, the news and our request crossed on the way. That shows within a round
trip; a connection that breaks later may have broken at work.
"""

import asyncio
import logging
from collections import Counter
from http import HTTPStatus

from aiohttp import hdrs
from multidict import CIMultiDict

from autoscaler.ports import Replica
from autoscaler.proxy.body import Body, Payload
from autoscaler.proxy.call import Call, CallBroke
from autoscaler.proxy.headers import RESPONSE_FIELDS_REPLACED, BadHead, end_to_end
from autoscaler.proxy.options import ProxyOptions, RouteOptions
from autoscaler.proxy.quiet_log import QuietLog
from autoscaler.proxy.upstream_pool import ReplicaConnections, UpstreamPool
from autoscaler.tls import client_context, watch

_BODY_IS_UNUSUAL = frozenset(("GET", "HEAD", "OPTIONS", "TRACE"))
"""Methods of which the absence of a body need not be said (RFC 9110 §8.6)."""


class Upstream:
    """Makes the calls of one route. Raises UsageError if a certificate cannot be used."""

    def __init__(self, options: ProxyOptions, route: RouteOptions) -> None:
        context = None if route.tls is None else client_context(route.tls)
        self.certificates = watch(route.tls, context)
        """The files by which servers are checked, and we show who we are."""
        self._live: dict[Call, str | None] = {}
        self._no_descriptors = QuietLog(logging.getLogger("autoscaler.proxy"))
        self._pool = UpstreamPool(options, route, context)

    async def close(self) -> None:
        """Close every connection."""
        self._pool.close()
        for call in tuple(self._live):
            call.end()
        await asyncio.sleep(0)  # what was closed is told so in the next turn of the loop

    async def call(
        self,
        method: str,
        replica: Replica,
        target: str,
        headers: CIMultiDict[str],
        body: Body,
        *,
        fresh_connection: bool = False,
        upgrade: bool = False,
        in_slot: bool = True,
    ) -> Call:
        """Send the request; return when the head of the answer is here.

        Connections that idle are used again, unless a `fresh_connection` is asked for, or an `upgrade` to a
        WebSocket, which takes its connection with it. The caller owns the `Call` from then on. When this is
        cancelled, the connection is closed at once. A call that is not `in_slot` is none of the ledger's.

        Raises
        ------
        CallBroke
            If no answer began.
        """
        # A body that no client sends has nobody to be told before the answer.
        between = getattr(body, "between", None)
        call = Call(self._is_over, expects_body=method != hdrs.METH_HEAD, between=between)
        self._live[call] = replica.id if in_slot else None
        try:
            way = self._pool.replica(replica.url)
            is_alone = fresh_connection or upgrade
            connection = None if is_alone else way.idle()
            if connection is None:
                connection = await way.connect(for_one_call=is_alone)
            if not body.complete:
                body.on_progress = connection.heard  # its silence is counted from the last of the upload
            payload = body.payload()
            framing, chunked = _framing(method, headers, payload)
            if is_alone:
                framing += (
                    "Connection: Upgrade\r\nUpgrade: websocket\r\n" if upgrade else "Connection: close\r\n"
                )
            head = _head(method, way, target, headers, framing)
            connection.ask(call, head, payload, chunked=chunked)
            await call.head()
            _check_head(call, upgrade)
        except BaseException as broken:
            call.end()
            if isinstance(broken, CallBroke) and broken.how == "local":
                self._no_descriptors.warning(
                    "no descriptor is left; raise the limit of open files (ulimit -n)"
                )
            raise
        finally:
            body.on_progress = None
        return call

    def live_calls(self) -> Counter[str]:
        """Count the calls that are under way in slots, by replica id."""
        return Counter(replica_id for replica_id in self._live.values() if replica_id is not None)

    def _is_over(self, call: Call) -> None:
        self._live.pop(call, None)


def _framing(method: str, headers: CIMultiDict[str], payload: Payload) -> tuple[str, bool]:
    """Return the field that is missing to say where the body ends, and whether the body is chunked."""
    declared = headers.get(hdrs.CONTENT_LENGTH)
    if isinstance(payload, bytes):
        if declared == str(len(payload)):
            return "", False
        headers.popall(hdrs.CONTENT_LENGTH, None)
        return f"Content-Length: {len(payload)}\r\n", False
    if declared is not None:
        return "", False
    if payload is not None:
        return "Transfer-Encoding: chunked\r\n", True
    return ("" if method in _BODY_IS_UNUSUAL else "Content-Length: 0\r\n"), False


def _head(
    method: str, way: ReplicaConnections, target: str, headers: CIMultiDict[str], framing: str
) -> bytes:
    fields = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
    if way.authorization is not None:
        others = [item for item in headers.items() if item[0].lower() != "authorization"]
        fields = "".join([f"{name}: {value}\r\n" for name, value in others])
        fields += f"Authorization: {way.authorization}\r\n"
    return f"{method} {way.prefix}{target} HTTP/1.1\r\nHost: {way.host}\r\n{fields}{framing}\r\n".encode()


def _check_head(call: Call, upgrade: bool) -> None:
    """Take from the head what is passed on; raise `CallBroke` if there is no way to pass the answer on."""
    fields, call.fields = call.fields, []
    try:
        call.headers = end_to_end(fields, without=RESPONSE_FIELDS_REPLACED)
    except BadHead as bad:
        text = f"The model server's answer cannot be passed on: {bad}."
        raise CallBroke("protocol", "maybe", text) from bad
    if call.status != HTTPStatus.SWITCHING_PROTOCOLS:
        return
    if not upgrade:
        raise CallBroke("protocol", "maybe", "The model server switched protocols, unasked.")
    if not _says_websocket(fields):
        raise CallBroke("protocol", "maybe", "The model server switched to another protocol than asked.")
    call.switched = True


def _says_websocket(fields: list[tuple[bytes, bytes]]) -> bool:
    said = next((value for name, value in fields if name.lower() == b"upgrade"), b"")
    return said.strip().lower() == b"websocket"
