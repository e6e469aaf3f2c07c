"""TLS of the listeners and towards the model servers: contexts from files, renewed while the program runs.

A certificate lives for days or weeks, the program for months. Whoever renews certificates (cert-manager, an
ACME client) replaces files; so a context here is a shell around one that is made from the files, and made
again when they change. Connections that stand keep what they were made with; each new one gets the newest.
What cannot be used (a certificate without its key, in the moment between two writes) is not taken, and told.

A context for outgoing connections also knows under which name the server is to be asked for and checked.
"""

import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autoscaler.errors import UsageError
from autoscaler.watched_files import WatchedFiles


@dataclass(frozen=True, slots=True)
class ServerTls:
    """What a listener shows, and whom it lets in."""

    certificate: Path
    """PEM file: its certificate, then those up to the root that clients know."""
    key: Path
    """PEM file of its private key, without a passphrase."""
    client_ca: Path | None = None
    """PEM file of the authorities whose client certificates are asked for and checked; None asks for none."""

    @property
    def files(self) -> tuple[Path, ...]:
        """Every file that it is made of."""
        return tuple(path for path in (self.certificate, self.key, self.client_ca) if path is not None)


@dataclass(frozen=True, slots=True)
class ClientTls:
    """How a server is checked, and what is shown to it."""

    ca: Path | None = None
    """PEM file of the authorities that it may have its certificate from; None takes those of this machine."""
    server_name: str | None = None
    """Name that is asked for (SNI) and that its certificate must have; None takes the host of its URL. Set it
    where servers are reached by address and share one certificate."""
    certificate: Path | None = None
    """PEM file of our own certificate, where the server asks for one."""
    key: Path | None = None
    """PEM file of its private key, without a passphrase."""

    def __post_init__(self) -> None:
        if (self.certificate is None) != (self.key is None):
            raise ValueError("certificate and key belong together; give both or neither")

    @property
    def files(self) -> tuple[Path, ...]:
        """Every file that it is made of."""
        return tuple(path for path in (self.ca, self.certificate, self.key) if path is not None)


class RenewedContext(ssl.SSLContext):
    """A context that can be replaced under those who hold it: what they make, they make from the newest."""

    _make: Callable[[], ssl.SSLContext]
    _newest: ssl.SSLContext
    _server_name: str | None

    @classmethod
    def of(cls, make: Callable[[], ssl.SSLContext], server_name: str | None = None) -> "RenewedContext":
        """Return one that is made by `make`, and by it again at each `renew`."""
        newest = make()
        shell = cls(newest.protocol)
        shell.check_hostname = newest.check_hostname
        shell.verify_mode = newest.verify_mode
        shell._make, shell._newest, shell._server_name = make, newest, server_name
        return shell

    def renew(self) -> None:
        """Make it anew. Raises UsageError if the files cannot be used; it stays as it was then."""
        self._newest = self._make()

    def wrap_bio(self, *args: Any, **kwargs: Any) -> ssl.SSLObject:
        """Begin one connection (this is what event loops call)."""
        if self._server_name is not None:
            kwargs["server_hostname"] = self._server_name
        return self._newest.wrap_bio(*args, **kwargs)


def server_context(tls: ServerTls) -> RenewedContext:
    """Return the context of a listener. Raises UsageError if a file cannot be used; it says which."""

    def make() -> ssl.SSLContext:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.set_alpn_protocols(["http/1.1"])
        _load_chain(context, tls.certificate, tls.key)
        if tls.client_ca is not None:
            context.verify_mode = ssl.CERT_REQUIRED
            _load_authorities(context, tls.client_ca)
        return context

    return RenewedContext.of(make)


def client_context(tls: ClientTls) -> RenewedContext:
    """Return the context of outgoing connections. Raises UsageError if a file cannot be used."""

    def make() -> ssl.SSLContext:
        context = ssl.create_default_context(ssl.Purpose.SERVER_AUTH)
        if tls.ca is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            _load_authorities(context, tls.ca)
        if tls.certificate is not None and tls.key is not None:
            _load_chain(context, tls.certificate, tls.key)
        return context

    return RenewedContext.of(make, tls.server_name)


def watch(tls: ServerTls | ClientTls | None, context: RenewedContext | None) -> WatchedFiles:
    """Return the files of `tls`, which renew `context` when they change; none if there is none."""
    if tls is None or context is None:
        return WatchedFiles((), lambda: None)
    return WatchedFiles(tls.files, context.renew)


def _load_chain(context: ssl.SSLContext, certificate: Path, key: Path) -> None:
    for path in (certificate, key):
        _read(path)
    try:
        # An empty passphrase, because none would be asked for on the terminal.
        context.load_cert_chain(certificate, key, password="")
    except ssl.SSLError as error:
        raise UsageError(_why_no_chain(error, certificate, key)) from error


def _load_authorities(context: ssl.SSLContext, path: Path) -> None:
    _read(path)
    try:
        context.load_verify_locations(path)
    except ssl.SSLError as error:
        raise UsageError(f"{path} holds no certificate of an authority; name a PEM file that does") from error


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UsageError(f"{path} cannot be read: {reason}; check its name and permissions") from error


def _why_no_chain(error: ssl.SSLError, certificate: Path, key: Path) -> str:
    if error.reason == "KEY_VALUES_MISMATCH":
        return f"{key} is not the key of {certificate}; name the two that were made together"
    if "ENCRYPTED" in key.read_text("ascii", "replace"):
        return f"{key} is encrypted; write it without a passphrase: openssl pkey -in {key} -out NEW"
    return f"{certificate} and {key} are no certificate and key in PEM form ({error.reason or error})"
