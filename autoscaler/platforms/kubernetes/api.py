"""Calls to the API server: JSON in, JSON out, and what can go wrong told apart.

    ApiAway      no answer, or one that passes: not reached, overloaded, broken
    ApiRefused   an answer that says no: 403, 404, 409, 410, 422

An answer 401 is neither: who we are is read anew, and the call made once more.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import Any

import aiohttp
import msgspec

from autoscaler import __version__
from autoscaler.errors import PlatformUnavailable
from autoscaler.no_answer import why_no_answer
from autoscaler.platforms.kubernetes.access import Access

MERGE_PATCH = "application/merge-patch+json"
FORBIDDEN, NOT_FOUND, CONFLICT, GONE = 403, 404, 409, 410

_TIMEOUT = 10.0
"""A call that is not a watch must be answered within it [s]."""
_LINE_MAX = 2 * 2**20
"""No object is larger: etcd takes 1.5 MiB [bytes]."""

Json = Any
Query = Mapping[str, str]


class ApiAway(PlatformUnavailable):
    """The API server gives no answer that counts."""


class ApiRefused(PlatformUnavailable):
    """The API server says no."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


@contextmanager
def understood(what: str) -> Iterator[None]:
    """Read an answer about `what` within: one of another form is ApiAway, for a broken gateway gave it."""
    try:
        yield
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise ApiAway(f"an answer about {what} is not understood: {error!r}") from error


class Api:
    """One API server; open until `close`.

    Parameters
    ----------
    load : callable
        Returns how it is reached; called at the first call, and again when we are not known any more.
    """

    def __init__(self, load: Callable[[], Awaitable[Access]]) -> None:
        self._load = load
        self._access: Access | None = None
        self._session: aiohttp.ClientSession | None = None
        self._loading = asyncio.Lock()

    async def namespace(self) -> str:
        """Return the namespace in which we are at home."""
        return (await self._known()).namespace

    async def get(self, path: str) -> Json:
        """Read an object, or a list."""
        return await self._call("GET", path)

    async def patch(self, path: str, change: Json) -> Json:
        """Merge a change into an object; return the object."""
        return await self._call("PATCH", path, change, MERGE_PATCH)

    async def post(self, path: str, made: Json) -> Json:
        """Make an object."""
        return await self._call("POST", path, made, "application/json")

    @asynccontextmanager
    async def watch(self, path: str, query: Query, silence: float) -> AsyncIterator[AsyncIterator[Json]]:
        """Open a watch; within, iterate over its events. After `silence` [s] without a byte it is ApiAway."""
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=_TIMEOUT, sock_read=silence)
        try:
            async with AsyncExitStack() as opened:
                # Who is there answers at once, if not with events: silence must not look like calm.
                async with asyncio.timeout(_TIMEOUT):
                    answering = self._answer("GET", path, query, None, None, timeout)
                    answer = await opened.enter_async_context(answering)
                yield self._events(answer)
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
            raise ApiAway(f"the watch of {path} broke: {why_no_answer(error)}") from error

    async def close(self) -> None:
        """Let go of the connections."""
        if self._session is not None:
            await self._session.close()

    async def _events(self, answer: aiohttp.ClientResponse) -> AsyncIterator[Json]:
        async for line in answer.content:
            if line.strip():
                yield msgspec.json.decode(line)

    async def _call(self, method: str, path: str, body: Json = None, content_type: str | None = None) -> Json:
        timeout = aiohttp.ClientTimeout(total=_TIMEOUT)
        try:
            async with self._answer(method, path, {}, body, content_type, timeout) as answer:
                return msgspec.json.decode(await answer.read())
        except TimeoutError as error:
            raise ApiAway(f"no answer to {method} {path} within {_TIMEOUT:g} s") from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise ApiAway(f"{method} {path} failed: {why_no_answer(error)}") from error

    @asynccontextmanager
    async def _answer(
        self,
        method: str,
        path: str,
        query: Query,
        body: Json,
        content_type: str | None,
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - the library's own kind, for one call
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Make a call, as somebody who is known; within, read the answer, which says yes."""
        data = None if body is None else msgspec.json.encode(body)
        for last in (False, True):
            access = await self._known()
            headers = {"Accept": "application/json"} | (
                {"Content-Type": content_type} if content_type else {}
            )
            if (who := await access.authorization()) is not None:
                headers["Authorization"] = who
            more: dict[str, Any] = {"server_hostname": access.server_name} if access.server_name else {}
            try:
                async with self._open_session().request(
                    method,
                    access.host + path,
                    params=query,
                    data=data,
                    headers=headers,
                    timeout=timeout,
                    allow_redirects=False,
                    proxy=access.proxy,
                    ssl=access.tls if access.tls is not None else True,
                    **more,
                ) as answer:
                    if answer.status == 401 and not last:
                        await self._forget(access)
                        continue
                    if answer.status >= 300:
                        raise _refusal(method, path, answer.status, await answer.read())
                    yield answer
                    return
            except aiohttp.ClientSSLError:  # the authority may have been renewed: the next call knows
                await self._forget(access)
                raise

    async def _known(self) -> Access:
        async with self._loading:
            if self._access is None:
                self._access = await self._load()
            return self._access

    async def _forget(self, access: Access) -> None:
        """We are not known any more; read anew who we are, unless another call has done so already."""
        async with self._loading:
            if self._access is access:
                self._access = None

    def _open_session(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                headers={"User-Agent": f"inference-autoscaler/{__version__}"},
                read_bufsize=_LINE_MAX,
                trust_env=True,
            )
        return self._session


def refusal_of(status: Json, path: str) -> PlatformUnavailable:
    """Return the error that a Status object in a watch stands for."""
    return _refusal("WATCH", path, int(status.get("code") or 500), msgspec.json.encode(status))


def _refusal(method: str, path: str, status: int, body: bytes) -> PlatformUnavailable:
    try:
        message = str(msgspec.json.decode(body)["message"])
    except (ValueError, KeyError, TypeError):
        message = body[:200].decode("utf-8", "replace").strip()
    text = f"{method} {path} was answered {status}: {message[:500]}"
    if status == 401:
        return ApiAway(f"{text}; renew the token or the certificate of the kubeconfig")
    if status == FORBIDDEN:
        text += "; bind the Role of deploy/kubernetes/rbac.yaml"
    if status in (408, 425, 429) or status >= 500:
        return ApiAway(text)
    return ApiRefused(status, text)
