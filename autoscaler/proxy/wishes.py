"""What a client asks of the proxy itself, in the head of its request.

X-Request-Timeout-Ms: 1500    an answer after this is of no use: the deadline of the whole request
Idempotency-Key: K            the same request, sent again, is not executed again (see `idempotency`)
X-Want-Queue-Info: 1          tell the place in the queue and the expected start, now and at the end
"""

import re
from collections.abc import Mapping

from autoscaler.domain.value import value
from autoscaler.proxy.answers import Refusal, Refused

TIMEOUT = "X-Request-Timeout-Ms"
KEY = "Idempotency-Key"
QUEUE_INFO = "X-Want-Queue-Info"

OWN_FIELDS = frozenset((QUEUE_INFO.lower().encode(),))
"""What concerns nobody but the proxy; the others may mean something to a server too."""

_KEY_FORM = re.compile(r"[ -~]{1,255}")
_TIMEOUT_MAX = 7 * 86_400_000
"""The longest deadline that makes sense [ms]."""


@value
class Wishes:
    """What one client asked for."""

    timeout: float | None
    """From the arrival to the last byte [s]; None for no limit."""
    key: str | None
    """Names the request, if it may come more than once."""
    queue_info: bool
    """Whether it wants to be told where it stands."""


def wishes_of(headers: Mapping[str, str]) -> Wishes:
    """Read the wishes; raises `Refused` if one cannot be understood."""
    return Wishes(
        timeout=_timeout(headers.get(TIMEOUT)),
        key=_key(headers.get(KEY)),
        queue_info=headers.get(QUEUE_INFO, "").strip() == "1",
    )


def _timeout(given: str | None) -> float | None:
    if given is None:
        return None
    if not (given.isascii() and given.isdigit() and 1 <= int(given[:12]) <= _TIMEOUT_MAX):
        text = (
            f"{TIMEOUT} is {given[:50]!r}; it takes a whole number of milliseconds from 1 to {_TIMEOUT_MAX}."
        )
        raise Refused(Refusal(400, "bad_timeout", text))
    return int(given) / 1000


def _key(given: str | None) -> str | None:
    if given is None:
        return None
    if not _KEY_FORM.fullmatch(given):
        text = f"{KEY} takes 1 to 255 printable ASCII characters, got {len(given)} characters."
        raise Refused(Refusal(400, "bad_idempotency_key", text))
    return given
