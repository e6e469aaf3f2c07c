"""Asks the admin listener of a running program."""

import json
import os
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode, urlsplit
from urllib.request import ProxyHandler, Request, build_opener

from autoscaler.errors import UsageError

_TIMEOUT = 5.0
"""No answer within it is none [s]."""


_WHICH = "name the admin listener with --url: it is `admin` in the configuration"
_UNAUTHORIZED, _SERVER_ERROR = 401, 500

TOKEN_FILE = "AUTOSCALER_ADMIN_TOKEN_FILE"
"""Environment variable that names the file with the token, if the admin listener asks for one."""


class NoAnswer(UsageError):
    """Nobody is there now; later somebody may be."""


def ask(base: str, path: str, **query: object) -> bytes:
    """Return the body of GET `base` + `path`; parameters that are None are left out.

    Raises
    ------
    NoAnswer
        If nobody answers, or only who stands in between.
    UsageError
        If `base` is no HTTP URL, or the answer is an error; it says which.
    """
    parameters = urlencode({name: value for name, value in query.items() if value is not None})
    url = f"{base_url(base)}{path}" + (f"?{parameters}" if parameters else "")
    try:
        # The listener is near: a proxy of the environment would look for it elsewhere.
        with build_opener(ProxyHandler({})).open(_with_token(url), timeout=_TIMEOUT) as response:
            return bytes(response.read())
    except HTTPError as error:
        if error.code == _UNAUTHORIZED:
            raise UsageError(f"{url} asks for a token; set {TOKEN_FILE} to the file that holds it") from error
        kind = NoAnswer if error.code >= _SERVER_ERROR else UsageError
        raise kind(f"{url}: {_error_text(error)}") from error
    except HTTPException as error:
        raise UsageError(f"{base} does not speak HTTP ({type(error).__name__}); {_WHICH}") from error
    except (URLError, OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        reason = getattr(reason, "strerror", None) or reason
        raise NoAnswer(
            f"no answer from {base} ({reason}). Is the program running? Its admin listener is `admin` in the "
            f"configuration; name it with --url."
        ) from error


def _with_token(url: str) -> Request:
    request, name = Request(url), os.environ.get(TOKEN_FILE)
    if name:
        try:
            token = Path(name).read_text("utf-8").strip()
        except OSError as error:
            raise UsageError(f"{TOKEN_FILE} names {name}, which cannot be read ({error.strerror})") from error
        request.add_unredirected_header("Authorization", f"Bearer {token}")
    return request


def base_url(given: str) -> str:
    """Return a base URL as the user gave it, without a trailing slash. Raises UsageError if it is none."""
    if not _is_url(given):
        raise UsageError(f"--url {given}: not a URL; write it as http://127.0.0.1:8082")
    return given.rstrip("/")


def _is_url(given: str) -> bool:
    try:
        parts = urlsplit(given)
        http = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # no IPv6 address in the brackets, or no port after the colon
        return False
    return http and given.isprintable() and " " not in given


def not_ours(base: str) -> UsageError:
    """Return the error for an answer that is none of an admin listener."""
    return UsageError(f"{base} answers, but not as an admin listener of this program; {_WHICH}")


def _error_text(error: HTTPError) -> str:
    try:
        return str(json.loads(error.read())["error"])
    except (ValueError, KeyError, TypeError):
        return f"answers {error.code} {error.reason}; {_WHICH}"
