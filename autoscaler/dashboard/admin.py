"""The admin listener: metrics, health and facts for machines and people. What is here reads, changes nothing.

It is apart from the data listener, so that overload there cannot starve a probe here. All it tells
it is given as functions; it holds no state.
"""

import asyncio
import errno
import logging
import ssl
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.typedefs import Middleware

from autoscaler.dashboard.admin_token import AdminToken, asks_for
from autoscaler.errors import AutoscalerError, PortTaken, UsageError
from autoscaler.telemetry.decision_codec import DecisionRecord, record_to_plain
from autoscaler.telemetry.live_request import LiveRequest
from autoscaler.telemetry.plain import encode
from autoscaler.telemetry.status import Status

_log = logging.getLogger("autoscaler.admin")

_ENTRIES_MAX = 1000
_DIGITS_MAX = 15
_INDEX = """\
autoscaler, admin listener

/metrics                        for Prometheus, text or OpenMetrics
/healthz                        200 while the program runs
/readyz                         200 when it takes requests, 503 with the reasons until then
/api/status                     what is going on, as JSON
/api/decisions?pool=P&limit=N   the last decisions with all that they were made from, as JSON
/api/requests?limit=N           the requests in flight, the oldest first: where each stands, as JSON
/api/observations?since=N       of a sidecar: the demand of its last intervals, for a controller, as JSON
/api/shares/POOL                of a proxy that shares its replicas: its slots, which a controller puts
"""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True)
class AdminSources:
    """Where the admin listener gets what it tells."""

    status: Callable[[], Status]
    """The state of the moment; called on the event loop."""
    decisions: Callable[[str | None, int], list[DecisionRecord]]
    """The last decisions of a pool (None: of all), so many at most, oldest first; called in a thread."""
    not_ready: Callable[[], list[str]]
    """Why the program does not take requests now; empty if it does."""
    metrics: Callable[[str], tuple[bytes, str]]
    """Body and content type of the metrics, given an Accept header."""
    requests: Callable[[], list[LiveRequest]] = list
    """The requests in flight, the oldest first."""
    observations: Callable[[int, str | None, str | None], object] | None = None
    """The intervals after a number, of an incarnation, for a reader; None where nobody else decides on it."""
    more: Sequence[web.AbstractRouteDef] = ()
    """Routes that are a story of their own."""


def admin_application(sources: AdminSources, token: AdminToken | None = None) -> web.Application:
    """Build the application of the admin listener, which asks for `token` if there is one."""
    guards: list[Middleware] = [] if token is None else [asks_for(token)]
    application = web.Application(middlewares=[_errors_as_json, *guards])

    async def index(request: web.Request) -> web.Response:
        return web.Response(text=_INDEX)

    async def metrics(request: web.Request) -> web.Response:
        body, content_type = sources.metrics(request.headers.get("Accept", ""))
        return web.Response(body=body, headers={"Content-Type": content_type})

    async def healthz(request: web.Request) -> web.Response:
        return _json({"healthy": True})

    async def readyz(request: web.Request) -> web.Response:
        reasons = sources.not_ready()
        return _json({"ready": not reasons, "reasons": reasons}, status=503 if reasons else 200)

    async def status(request: web.Request) -> web.Response:
        return _json(sources.status())

    async def decisions(request: web.Request) -> web.Response:
        pool, limit = _known_pool(request, sources), _limit(request)
        records = await asyncio.to_thread(sources.decisions, pool, limit)
        return _json({"decisions": [record_to_plain(record) for record in records]})

    async def observations(request: web.Request) -> web.Response:
        if sources.observations is None:
            raise web.HTTPNotFound(text="this program decides by itself; `autoscaler sidecar` has this")
        incarnation, reader = (request.query.get(name) for name in ("incarnation", "reader"))
        return _json(sources.observations(_since(request), incarnation, reader))

    async def requests(request: web.Request) -> web.Response:
        limit, live = _limit(request), sources.requests()
        return _json({"in_flight": len(live), "requests": live[:limit]})

    application.router.add_get("/", index)
    application.router.add_get("/metrics", metrics)
    application.router.add_get("/healthz", healthz)
    application.router.add_get("/readyz", readyz)
    application.router.add_get("/api/status", status)
    application.router.add_get("/api/decisions", decisions)
    application.router.add_get("/api/requests", requests)
    application.router.add_get("/api/observations", observations)
    application.router.add_routes(sources.more)
    return application


async def start_admin(
    host: str,
    port: int,
    sources: AdminSources,
    token: AdminToken | None = None,
    tls: ssl.SSLContext | None = None,
) -> web.AppRunner:
    """Listen on `host`:`port` (0: any free one) until the runner's `cleanup()`.

    Returns
    -------
    aiohttp.web.AppRunner
        Its `addresses` tell the port.

    Raises
    ------
    PortTaken
        If somebody else listens there.
    UsageError
        If this machine cannot listen there at all.
    """
    _log.addFilter(_quietly_if_unreadable)
    runner = web.AppRunner(admin_application(sources, token), access_log=None, logger=_log)
    await runner.setup()
    try:
        await web.TCPSite(runner, host or None, port, ssl_context=tls).start()
    except OSError as error:
        await runner.cleanup()
        if error.errno == errno.EADDRINUSE:
            raise PortTaken(
                f"admin listener {host}:{port}: in use by another program. "
                f"Stop that program, or choose another port for the admin listener."
            ) from error
        raise UsageError(f"admin listener {host}:{port}: cannot listen there ({error.strerror}).") from error
    return runner


def _quietly_if_unreadable(record: logging.LogRecord) -> bool:
    """Make one line for the curious of what a client sent that is no HTTP: that is no fault of ours."""
    error = record.exc_info[1] if record.exc_info else None
    if not isinstance(error, HttpProcessingError):
        return True
    _log.debug("a request that is not valid HTTP was refused: %s", ascii(error.message))
    return False


@web.middleware
async def _errors_as_json(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except web.HTTPException as error:
        if error.status < 400:
            raise
        response = _json({"error": error.text or error.reason}, status=error.status)
        for name in ("Allow", "WWW-Authenticate"):
            if name in error.headers:
                response.headers[name] = error.headers[name]
        return response
    except AutoscalerError as error:
        return _json({"error": str(error)}, status=500)


def _json(value: object, status: int = 200) -> web.Response:
    return web.Response(
        body=encode(value),
        status=status,
        content_type="application/json",
        headers={"Cache-Control": "no-store"},
    )


def _known_pool(request: web.Request, sources: AdminSources) -> str | None:
    pool = request.query.get("pool")
    names = [known.name for known in sources.status().pools]
    if pool is not None and pool not in names:
        raise web.HTTPNotFound(text=f"no pool {pool!r}; there is {', '.join(names) or 'none'}")
    return pool


def _limit(request: web.Request) -> int:
    given = request.query.get("limit", "100")
    if not given.isascii() or not given.isdigit() or not 1 <= int(given) <= _ENTRIES_MAX:
        raise web.HTTPBadRequest(text=f"limit: a number from 1 to {_ENTRIES_MAX}, got {given!r}")
    return int(given)


def _since(request: web.Request) -> int:
    given = request.query.get("since", "0")
    if not given.isascii() or not given.isdigit() or len(given) > _DIGITS_MAX:
        raise web.HTTPBadRequest(text=f"since: the number of an interval, 0 for all, got {given!r}")
    return int(given)
