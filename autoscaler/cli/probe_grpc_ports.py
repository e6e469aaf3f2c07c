"""Whether the gRPC port of a server that is listed is the port of something else that is configured.

Nobody writes that port: it is taken to be the one after the HTTP port. So it may meet a listener of this
program, or the HTTP port of the next server. Requests over gRPC would then go there.
"""

from collections.abc import Iterator
from urllib.parse import urlsplit

from autoscaler.cli.findings import Finding, Level
from autoscaler.platforms.static import StaticOptions
from autoscaler.settings import Settings
from autoscaler.units import Address

_THIS_MACHINE = ("127.0.0.1", "localhost", "::1")
_EVERY_INTERFACE = ("", "0.0.0.0", "::")
_DEFAULT_PORTS = {"http": 80, "https": 443}


def probe_grpc_ports(settings: Settings) -> list[Finding]:
    """Return a warning for each server whose gRPC port is something else's as well."""
    taken = {**_http_ports(settings), **_listeners(settings)}
    return [
        Finding(Level.WARNING, f"pools.{name}.server.grpc_port", _meets(url, target, taken[_place(target)]))
        for name, url, target in _grpc_ports(settings)
        if _place(target) in taken
    ]


def _meets(url: str, target: str, other: str) -> str:
    return (
        f"{url} is taken to take gRPC at {target}, where {other} is; "
        "set the port that it has, none if it has none, or choose another port for one of them"
    )


def _listeners(settings: Settings) -> dict[tuple[str, int], str]:
    """Return what this program listens at, as seen from this machine, and the setting that says so."""
    listeners = {
        "listen": Address(settings.proxy.host, settings.proxy.port),
        "admin": settings.admin,
        "grpc.listen": Address(settings.grpc.host, settings.grpc.port),
    }
    if settings.speaks_to_keda:
        listeners["keda.listen"] = Address(settings.keda.host, settings.keda.port)
    return {
        (_host("127.0.0.1" if address.host in _EVERY_INTERFACE else address.host), address.port): name
        for name, address in listeners.items()
        if address.port
    }


def _http_ports(settings: Settings) -> dict[tuple[str, int], str]:
    """Return where the servers take HTTP, and the setting that says so."""
    return {
        _place_of_url(url): f"pools.{name}.platform.urls[{index}] ({url})"
        for name, platform in _lists(settings)
        for index, url in enumerate(platform.urls)
    }


def _grpc_ports(settings: Settings) -> Iterator[tuple[str, str, str]]:
    """Yield the pool, the URL and the gRPC port of each server that has one."""
    for name, platform in _lists(settings):
        for url, target in zip(platform.urls, platform.grpc_targets, strict=False):
            yield name, url, target


def _lists(settings: Settings) -> Iterator[tuple[str, StaticOptions]]:
    for name, pool in settings.pools.items():
        if isinstance(pool.platform, StaticOptions):
            yield name, pool.platform


def _place_of_url(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    return _host(parts.hostname or ""), parts.port or _DEFAULT_PORTS[parts.scheme]


def _place(target: str) -> tuple[str, int]:
    host, _, port = target.rpartition(":")
    return _host(host.strip("[]")), int(port)


def _host(host: str) -> str:
    return "127.0.0.1" if host in _THIS_MACHINE else host
