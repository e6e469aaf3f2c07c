"""What a server says of itself by the status of an answer: that it has too much to do, or that it failed."""

from multidict import CIMultiDict

BUSY = (429, 503)
"""By these a server says that it has too much to do."""

FAILED = (500, 502, 504)
"""By these it says that it failed."""

_RETRY_AFTER_MAX = 3600
"""A server is not left alone for longer, whatever it says [s]."""


def retry_after(headers: CIMultiDict[str]) -> float:
    """Return for how long a server asks to be left alone [s]; 0 if it does not say it in seconds."""
    said = headers.get("Retry-After", "")
    return min(int(said), _RETRY_AFTER_MAX) if said.isascii() and said.isdigit() else 0.0
