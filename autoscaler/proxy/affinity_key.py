"""What makes requests alike, so that a replica that has served one finds its cache warm for the next.

    the session     value of a header that the route names
    the prompt      digest of how the prompt of an OpenAI body begins

The first that a request has is its key; one that has neither goes to the least loaded replica. Neither is
parsed: the beginning of the prompt is the bytes behind its name in the JSON text, looked for in the beginning
of the body. Two clients that write the same prompt in another order of keys or with other spaces are unlike
then, which costs a cold cache and nothing else.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b

_PROMPT = re.compile(rb'"(?:messages|prompt|input)"\s*:')
_LOOKED_AT = 16 * 1024
"""The prompt begins within this, or is not found [bytes]: what stands before it is short."""

_SESSION_MAX = 256
"""So much of a session's name tells it from others [characters]."""


@dataclass(frozen=True, slots=True)
class AffinityKeyOptions:
    """By what requests are told to be alike; nothing by default."""

    session_header: str | None = None
    """Header whose value names a session, a conversation or a user, such as `X-Session-Id`; None for none."""
    prompt_prefix_bytes: int | None = None
    """Prompts that have so many first bytes in common are alike [bytes]; None for none. Longer than what all
    prompts begin with, such as the system message, or all of them are; shorter than what shall be kept."""

    def __post_init__(self) -> None:
        if self.session_header is not None and not self.session_header:
            raise ValueError("need the name of a header for session_header, or none, got an empty one")
        if self.prompt_prefix_bytes is not None and self.prompt_prefix_bytes < 1:
            raise ValueError(f"need prompt_prefix_bytes >= 1, got {self.prompt_prefix_bytes}")

    @property
    def any(self) -> bool:
        """Whether there is anything to tell requests by."""
        return self.session_header is not None or self.prompt_prefix_bytes is not None


def affinity_key(
    options: AffinityKeyOptions,
    field: Callable[[str], str | None],
    path: str,
    held: Callable[[], bytes] = bytes,
) -> str:
    """Return what a request has in common with those like it; empty if nothing.

    Parameters
    ----------
    options : AffinityKeyOptions
        Of the route.
    field : callable
        Looks up a header.
    path : str
        Of the request; prompts are looked for below `/v1` only.
    held : callable
        Returns what of its body is here; called only if it is to be looked at.
    """
    if options.session_header is not None and (session := field(options.session_header)):
        return session[:_SESSION_MAX]
    if options.prompt_prefix_bytes is None or not path.startswith("/v1/"):
        return ""
    body = held()
    found = _PROMPT.search(body, 0, _LOOKED_AT)
    if found is None:
        return ""
    prefix = body[found.end() : found.end() + options.prompt_prefix_bytes]
    return blake2b(prefix, digest_size=16).hexdigest()
