"""Values that say where something is: addresses, ports, URLs and their paths."""

import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import SplitResult, urlsplit

from autoscaler import units
from autoscaler.settings.grpc_port import GrpcPort
from autoscaler.settings.values.kind import Kind, not_allowed, parsed
from autoscaler.units import Address

_PORT_MAX = 65_535


@dataclass(frozen=True, slots=True)
class Listening(Kind):
    """An address to listen on."""

    def read(self, given: Any) -> Address:
        remedy = f"did you mean 127.0.0.1:{given}?" if isinstance(given, int) else ""
        return parsed(units.parse_address, given, units.ADDRESS_FORM, remedy)


@dataclass(frozen=True, slots=True)
class GrpcPortKind(Kind):
    """Where the gRPC port of a server is, seen from its HTTP port."""

    def read(self, given: Any) -> GrpcPort:
        is_number = isinstance(given, int) and not isinstance(given, bool)
        if is_number and 1 <= given <= _PORT_MAX:
            return GrpcPort(given, is_added=False)
        match = re.fullmatch(r"port\s*([+-]\s*\d{1,5})", given) if isinstance(given, str) else None
        if match is None:
            remedy = "write it without quotes" if isinstance(given, str) and given.isdigit() else ""
            raise not_allowed("a port such as 8001, or port+1 for the one after the HTTP port", remedy)
        return GrpcPort(int(match[1].replace(" ", "")), is_added=True)


@dataclass(frozen=True, slots=True)
class UrlPath(Kind):
    """The path of a URL, as `/healthz`."""

    def read(self, given: Any) -> str:
        if not isinstance(given, str) or not re.fullmatch(r"/[!-~]*", given):
            remedy = f"did you mean /{given}?" if isinstance(given, str) and given[:1].isalnum() else ""
            raise not_allowed("a path that begins with /, such as /healthz", remedy)
        return given


@dataclass(frozen=True, slots=True)
class Url(Kind):
    """The base URL of a server, without a trailing slash."""

    allowed = "a URL such as http://127.0.0.1:9001, without query"

    def read(self, given: Any) -> str:
        if not isinstance(given, str):
            raise not_allowed(self.allowed)
        parts = _web_parts(given)
        if parts is not None and parts.username is not None:
            raise not_allowed(self.allowed, "remove user and password; URLs are shown", secret=True)
        if parts is None or parts.query or parts.fragment or re.search(r"\s", given):
            remedy = f"did you mean http://{given}?" if re.fullmatch(r"[\w.-]+:\d+(/.*)?", given) else ""
            raise not_allowed(self.allowed, remedy)
        return given.rstrip("/")


@dataclass(frozen=True, slots=True)
class WebAddress(Kind):
    """A URL with all that belongs to it, a query too."""

    allowed = "a URL such as https://scaler.example.org/scale"

    def read(self, given: Any) -> str:
        parts = _web_parts(given) if isinstance(given, str) else None
        if parts is None or parts.fragment or re.search(r"\s", given):
            raise not_allowed(self.allowed)
        return str(given)


def _web_parts(given: str) -> SplitResult | None:
    """Return the parts of a URL that a client could ask; None if it is none."""
    try:
        parts = urlsplit(given)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:  # a port that is none, brackets that do not close
        return None
    return parts if usable else None
