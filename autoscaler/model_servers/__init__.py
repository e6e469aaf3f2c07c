"""How each kind of model server is asked whether it can serve: one file a kind.

They differ in what they ask; how a question is put is the same, and stands here. Each question takes a
connection of its own: a server with one thread must not be held up by an idle probe, and a probe that
travels on an old connection would not notice that no new one is accepted.
"""

import ssl
from dataclasses import dataclass

import aiohttp

from autoscaler.tls import ClientTls, client_context, watch


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back."""

    status: int
    body: bytes

    @property
    def is_success(self) -> bool:
        """Whether the status is 2xx; a redirect is not, it leads to somebody else."""
        return 200 <= self.status < 300


class HttpProbe:
    """Asks; whatever goes wrong, there was no answer.

    Parameters
    ----------
    timeout : float
        For connection, head and body together [s].
    tls : ClientTls or None
        How a server is checked, as the traffic to it does; None takes what is usual for https.
    """

    def __init__(self, timeout: float, tls: ClientTls | None = None) -> None:
        if timeout <= 0:
            raise ValueError(f"need a probe timeout > 0 s, got {timeout}")
        context = None if tls is None else client_context(tls)
        self._ssl: ssl.SSLContext | bool = context or True
        self._certificates = watch(tls, context)
        self._timeout = aiohttp.ClientTimeout(total=timeout)
        self._session: aiohttp.ClientSession | None = None
        self._closed = False

    async def get(self, url: str) -> Answer | None:
        """Return the answer to GET `url`, or None if none came in time."""
        return await self._ask("GET", url, None, None)

    async def post(self, url: str, body: bytes, patience: float | None = None) -> Answer | None:
        """Return the answer to POST `url` with JSON, or None; `patience` [s] where it may take longer."""
        return await self._ask("POST", url, body, patience)

    async def succeeds(self, url: str) -> bool:
        """Whether GET `url` is answered with 2xx."""
        answer = await self.get(url)
        return answer is not None and answer.is_success

    async def close(self) -> None:
        """Close the session; questions from now on have no answer."""
        self._closed = True
        if self._session is not None:
            await self._session.close()

    async def _ask(self, method: str, url: str, body: bytes | None, patience: float | None) -> Answer | None:
        if self._closed:
            return None
        self._certificates.look()
        limit = self._timeout if patience is None else aiohttp.ClientTimeout(total=patience)
        form = None if body is None else {"Content-Type": "application/json"}
        session = self._open_session()
        try:
            async with session.request(
                method, url, data=body, headers=form, timeout=limit, allow_redirects=False
            ) as response:
                return Answer(response.status, await response.read())
        except (aiohttp.ClientError, OSError, ValueError):  # TimeoutError is an OSError
            return None

    def _open_session(self) -> aiohttp.ClientSession:
        # Made at the first question, because a session belongs to the event loop that runs then.
        if self._session is None:
            connector = aiohttp.TCPConnector(limit=0, force_close=True, ssl=self._ssl)
            self._session = aiohttp.ClientSession(connector=connector, timeout=self._timeout)
        return self._session
