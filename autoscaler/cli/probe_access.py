"""Whether certificates, the file of tenants and the admin token can be used here, and for how long.

Files are read by the code that will read them when the program runs, so what is said here is what would be
said then. How long a certificate is good is told too, because most outages by certificates are that.
"""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509

from autoscaler.cli.findings import Finding, Level
from autoscaler.dashboard.admin_token import AdminToken
from autoscaler.errors import UsageError
from autoscaler.settings import PoolSettings, Settings, load_tenants
from autoscaler.tls import ClientTls, ServerTls, client_context, server_context

_SOON = timedelta(days=14)
"""A certificate that is good for less should have been renewed by now."""

_OTHERS_MAY_READ = 0o044


def probe_access(settings: Settings, now: datetime | None = None) -> list[Finding]:
    """Try everything that says who may come in, and whom the program believes."""
    at = now or datetime.now(UTC)
    access, keys_file = settings.admin_access, settings.tenants.keys_file
    findings = list(_listener("tls", settings.proxy.tls, at))
    findings += _listener("admin_access", access.tls, at)
    if settings.speaks_to_keda:
        findings += _listener("keda", settings.keda.tls, at)
    if access.token_file is not None:
        findings.append(_tried("admin_access.token_file", lambda: _token(access.token_file)))
        findings += _readable_by_others("admin_access.token_file", access.token_file)
    if keys_file is not None:
        pools = frozenset(settings.pools)
        findings.append(_tried("tenants.keys_file", lambda: _tenants(keys_file, pools)))
    for pool in settings.pools.values():
        findings += _servers(pool, at)
    return findings


def _listener(subject: str, tls: ServerTls | None, now: datetime) -> Iterator[Finding]:
    if tls is None:
        return
    yield _tried(subject, lambda: _made(server_context(tls), f"{tls.certificate} has its key"))
    yield from _good_for(f"{subject}.certificate", tls.certificate, now)
    yield from _readable_by_others(f"{subject}.key", tls.key)
    if tls.client_ca is not None:
        yield from _good_for(f"{subject}.client_ca", tls.client_ca, now)


def _servers(pool: PoolSettings, now: datetime) -> Iterator[Finding]:
    tls, subject = pool.route.tls, f"pools.{pool.name}.tls"
    if tls is None or tls == ClientTls():
        return
    yield _tried(subject, lambda: _made(client_context(tls), "its files can be used"))
    for name, path in (("ca", tls.ca), ("certificate", tls.certificate)):
        if path is not None:
            yield from _good_for(f"{subject}.{name}", path, now)


def _tried(subject: str, use: Callable[[], str]) -> Finding:
    try:
        return Finding(Level.OK, subject, use())
    except UsageError as error:
        return Finding(Level.PROBLEM, subject, str(error))


def _made(context: object, text: str) -> str:
    return text


def _token(path: Path | None) -> str:
    if path is not None:
        AdminToken(path)
    return f"{path} holds a token"


def _tenants(path: Path, pools: frozenset[str]) -> str:
    return f"{path} names {len(load_tenants(path, pools).tenants)} tenants"


def _good_for(subject: str, path: Path, now: datetime) -> Iterator[Finding]:
    """Tell how long the certificates of a file are good; a file that cannot be read is told already."""
    try:
        certificates = x509.load_pem_x509_certificates(path.read_bytes())
    except (OSError, ValueError):
        return
    first = min(certificates, key=lambda certificate: certificate.not_valid_after_utc)
    begins = max(certificate.not_valid_before_utc for certificate in certificates)
    ends, left = first.not_valid_after_utc, first.not_valid_after_utc - now
    if left < timedelta(0):
        yield Finding(Level.PROBLEM, subject, f"{path} was good until {ends:%Y-%m-%d %H:%M} UTC; renew it")
    elif begins > now:
        text = f"{path} is good from {begins:%Y-%m-%d %H:%M} UTC only; wait, or set the clock of this machine"
        yield Finding(Level.PROBLEM, subject, text)
    elif left < _SOON:
        text = f"{path} is good until {ends:%Y-%m-%d %H:%M} UTC only, {left.days} days; renew it"
        yield Finding(Level.WARNING, subject, text)
    else:
        yield Finding(Level.OK, subject, f"{path} is good until {ends:%Y-%m-%d}")


def _readable_by_others(subject: str, path: Path) -> Iterator[Finding]:
    try:
        mode = path.stat().st_mode
    except OSError:
        return
    if mode & _OTHERS_MAY_READ:
        yield Finding(Level.WARNING, subject, f"{path} can be read by other users; chmod 600 {path}")
