"""Asks the admin listener of a running program."""

import json
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode, urlsplit
from urllib.request import ProxyHandler, build_opener

from autoscaler.errors import UsageError

_TIMEOUT = 5.0
"""No answer within it is none [s]."""


def ask(base: str, path: str, **query: object) -> bytes:
    """Return the body of GET `base` + `path`; parameters that are None are left out.

    Raises
    ------
    UsageError
        If `base` is no HTTP URL, nobody answers, or the answer is an error; it says which.
    """
    parameters = urlencode({name: value for name, value in query.items() if value is not None})
    url = f"{base_url(base)}{path}" + (f"?{parameters}" if parameters else "")
    try:
        # The listener is near: a proxy of the environment would look for it elsewhere.
        with build_opener(ProxyHandler({})).open(url, timeout=_TIMEOUT) as response:
            return bytes(response.read())
    except HTTPError as error:
        raise UsageError(f"{url}: {_error_text(error)}") from error
    except (URLError, OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise UsageError(
            f"no answer from {base} ({reason}). Is the program running? Its admin listener is `admin` in the "
            f"configuration; name it with --url."
        ) from error


def base_url(given: str) -> str:
    """Return a base URL as the user gave it, without a trailing slash. Raises UsageError if it is none."""
    parts = urlsplit(given)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise UsageError(f"--url {given}: not a URL; write it as http://127.0.0.1:8082")
    return given.rstrip("/")


def _error_text(error: HTTPError) -> str:
    try:
        return str(json.loads(error.read())["error"])
    except (ValueError, KeyError, TypeError):
        return f"answered {error.code} {error.reason}"
