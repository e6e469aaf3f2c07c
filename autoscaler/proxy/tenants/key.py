"""Keys of tenants: 256 bits from the system, shown once; kept is their digest only.

A key is `iak_` and 43 letters, so that a scanner for secrets finds one that leaked. What is guessed needs
2²⁵⁵ tries, so a fast digest without salt is enough: slow ones are for passwords that people invent.
"""

import hashlib
import re
import secrets

PREFIX = "iak_"
DIGEST_PREFIX = "sha256:"
DIGEST_FORM = "a digest such as sha256:9f86d0…, 64 hexadecimal digits"

_RANDOM_BYTES = 32
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


def new_key() -> str:
    """Return a key that nobody has."""
    return PREFIX + secrets.token_urlsafe(_RANDOM_BYTES)


def digest_of(key: str) -> str:
    """Return what is kept of a key."""
    return DIGEST_PREFIX + hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()


def is_digest(text: str) -> bool:
    """Whether `text` is what `digest_of` returns."""
    return _DIGEST.fullmatch(text) is not None
