"""What of a message head is passed on: everything, except what belongs to one connection only.

Names, values, order, case and duplicates are kept. Hop-by-hop fields go, the standard ones and those that
`Connection` names (RFC 9110 §7.6.1), and so do the fields by which the next hop could be told a framing
other than the true one: `Content-Length` and `Host` are written anew.

Values are bytes of no stated charset. Ours are written as UTF-8, so those that are not UTF-8 are read as
Latin-1 (RFC 9110 §5.5) and arrive transcoded rather than mutilated.
"""

import re
from collections.abc import Iterable

from multidict import CIMultiDict

_HOP_BY_HOP = frozenset(
    (
        b"connection",
        b"http2-settings",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    )
)
REQUEST_FIELDS_REPLACED = _HOP_BY_HOP | {b"host", b"expect", b"content-length"}
RESPONSE_FIELDS_REPLACED = _HOP_BY_HOP
TRAILERS_DROPPED = _HOP_BY_HOP | {
    b"host",
    b"content-length",
    b"content-encoding",
    b"content-type",
    b"content-range",
}
"""What may not stand behind a body, for it says how to read it (RFC 9110 §6.5.1)."""

_FORBIDDEN = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_AUTHORITY_FORM = re.compile(r"(?i:https?)://([^/?#]*)(.*)", re.DOTALL)


class BadHead(ValueError):
    """A message head that cannot be passed on; the text says why."""


def end_to_end(raw: Iterable[tuple[bytes, bytes]], without: frozenset[bytes]) -> CIMultiDict[str]:
    """Return the fields to pass on: `raw`, less those named in `without` or by `Connection`.

    Raises
    ------
    BadHead
        If a value holds a control character.
    """
    kept: CIMultiDict[str] = CIMultiDict()
    listed = b""
    for name, value in raw:
        lower = name.lower()
        if lower not in without:
            kept.add(name.decode("latin-1"), _text(value))
        elif lower == b"connection":
            listed += b"," + value
    for token in listed.split(b",") if listed else ():
        kept.popall(token.strip().decode("latin-1"), None)
    if _FORBIDDEN.search("\t".join(kept.values())):
        bad = next(name for name, value in kept.items() if _FORBIDDEN.search(value))
        raise BadHead(f"the value of header {bad!r} holds a control character")
    return kept


def origin_form(target: str, host: str | None) -> str:
    """Return path and query of a request target, in ASCII; its bytes as they came wherever they may stay.

    Raises
    ------
    BadHead
        If it has no path, or names another host than the `Host` header.
    """
    if not target.startswith("/"):
        match = _AUTHORITY_FORM.fullmatch(target)
        if match is None:
            raise BadHead(f"the request target {target!r} is no path")
        authority, target = match.groups()
        if host is not None and authority.lower() != host.lower():
            raise BadHead(f"the request target names host {authority!r}, the Host header {host!r}")
        if not target.startswith("/"):
            target = "/" + target
    if "#" in target:
        raise BadHead(f"the request target {target!r} holds a fragment, which no request may send")
    if not target.isascii():
        target = "".join(
            chr(byte) if byte < 0x80 else f"%{byte:02X}" for byte in target.encode("utf-8", "surrogateescape")
        )
    return target


def _text(value: bytes) -> str:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return value.decode("latin-1")
