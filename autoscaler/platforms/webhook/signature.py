"""Signs what is sent, so that a receiver can tell it from what anybody else sends, and from a repetition.

The scheme is that of the Standard Webhooks specification, for which receivers find libraries: HMAC-SHA256
over `id.timestamp.body`, in base64 after `v1,`. The timestamp is that of the attempt, so a receiver refuses
what is old; the id is that of the event, so it does nothing twice.
"""

import base64
import hashlib
import hmac
from collections.abc import Sequence
from pathlib import Path

from autoscaler.errors import UsageError

SECRET_BYTES_MIN = 16
"""A shorter secret could be guessed [bytes]."""

_PREFIX = "whsec_"
_MAKE = "echo whsec_$(openssl rand -base64 32)"
"""Makes a secret that libraries of the specification read as it is read here."""


def read_secrets(path: Path) -> tuple[bytes, ...]:
    """Read the secrets of a file, one a line; `whsec_` before base64, else as they stand.

    Libraries of the specification take every secret for base64, so theirs need the prefix here.

    Raises
    ------
    UsageError
        If the file cannot be read, or holds no secret that can be used; the text holds none of them.
    """
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = str(getattr(error, "strerror", None) or "no UTF-8 text").lower()
        raise UsageError(f"{path} cannot be read: {reason}; check its name and permissions") from error
    secrets = tuple(_secret(line.strip(), path) for line in lines if line.strip())
    if not secrets:
        raise UsageError(f"{path} holds no secret; write one in its first line: {_MAKE}")
    return secrets


def signature_headers(secrets: Sequence[bytes], event_id: str, timestamp: int, body: bytes) -> dict[str, str]:
    """Return the headers of one attempt at `timestamp` [s since the epoch]."""
    headers = {"Webhook-Id": event_id, "Webhook-Timestamp": str(timestamp)}
    if secrets:
        headers["Webhook-Signature"] = " ".join(_sign(each, event_id, timestamp, body) for each in secrets)
    return headers


def _sign(secret: bytes, event_id: str, timestamp: int, body: bytes) -> str:
    signed = b".".join((event_id.encode(), str(timestamp).encode(), body))
    return "v1," + base64.b64encode(hmac.digest(secret, signed, hashlib.sha256)).decode()


def _secret(line: str, path: Path) -> bytes:
    secret = line.encode()
    if line.startswith(_PREFIX):
        try:
            secret = base64.b64decode(line.removeprefix(_PREFIX), validate=True)
        except ValueError as error:
            raise UsageError(f"{path}: what follows whsec_ is not base64; make one with: {_MAKE}") from error
    if len(secret) < SECRET_BYTES_MIN:
        raise UsageError(
            f"{path}: a secret of {len(secret)} bytes is too short; use {SECRET_BYTES_MIN} or more, "
            f"as of: {_MAKE}"
        )
    return secret
