"""The token that the admin listener may ask for.

Health and readiness are told to everybody: whoever probes them is a machine that has no token, and learns
nothing else. The file is read again when it changes, so a token can be replaced while the program runs.
"""

import hashlib
import hmac
from collections.abc import Awaitable, Callable
from pathlib import Path

from aiohttp import hdrs, web
from aiohttp.typedefs import Middleware

from autoscaler.errors import UsageError
from autoscaler.watched_files import WatchedFiles

LENGTH_MIN = 16
"""A shorter token could be guessed [characters]."""

_OPEN_PATHS = ("/healthz", "/readyz")

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class AdminToken:
    """The token in a file. Raises UsageError if the file cannot be read, or holds none."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._digest = self._read()
        self._file = WatchedFiles([path], self._renew)

    def is_in(self, authorization: str) -> bool:
        """Whether an `Authorization` header carries it; takes as long whatever differs."""
        self._file.look()
        scheme, _, given = authorization.partition(" ")
        return hmac.compare_digest(_digest(given.strip()), self._digest) and scheme.lower() == "bearer"

    def _renew(self) -> None:
        self._digest = self._read()

    def _read(self) -> bytes:
        try:
            token = self._path.read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise UsageError(f"the token file {self._path} cannot be read: {reason.lower()}") from error
        if len(token) < LENGTH_MIN or len(token.split()) != 1:
            raise UsageError(
                f"the token file {self._path} must hold one word of {LENGTH_MIN} characters or more; "
                f"write one with: openssl rand -hex 32 > {self._path}"
            )
        return _digest(token)


def asks_for(token: AdminToken) -> Middleware:
    """Return the middleware that lets in who has the token."""

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.path in _OPEN_PATHS or token.is_in(request.headers.get(hdrs.AUTHORIZATION, "")):
            return await handler(request)
        refusal = web.HTTPUnauthorized(text="send the token of the admin listener as Authorization: Bearer")
        refusal.headers[hdrs.WWW_AUTHENTICATE] = "Bearer"
        raise refusal

    return guard


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()
