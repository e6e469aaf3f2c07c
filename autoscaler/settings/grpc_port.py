"""Where a server that is known by the URL of its HTTP port takes gRPC."""

from dataclasses import dataclass
from urllib.parse import urlsplit

_DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class GrpcPort:
    """A port of the same host: one and the same on every host, or next to the HTTP port."""

    number: int
    """The port, or what is added to the HTTP port."""
    is_added: bool

    def target(self, url: str) -> str:
        """Return `host:port` for the server at base URL `url`."""
        parts = urlsplit(url)
        port = http_port(url)
        host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
        return f"{host}:{port + self.number if self.is_added else self.number}"


def http_port(url: str) -> int:
    """Return the port of a base URL."""
    parts = urlsplit(url)
    return parts.port or _DEFAULT_PORTS[parts.scheme]


BESIDE_HTTP = GrpcPort(1, is_added=True)
"""As Triton has them unless told otherwise: 8000 and 8001."""
