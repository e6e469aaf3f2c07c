"""Certificates in the form that the gRPC library wants them.

The library reads no files. Of a listener it asks for the certificate at each handshake, so a renewed one is
in force at once; a channel keeps what it was opened with, so `Channels` opens new ones.
"""

from pathlib import Path
from typing import Any

import grpc
import structlog

from autoscaler.errors import UsageError
from autoscaler.tls import ClientTls, ServerTls, client_context, server_context
from autoscaler.watched_files import signature

log = structlog.get_logger(__name__)


def listener_credentials(tls: ServerTls) -> grpc.ServerCredentials:
    """Return the credentials of the listener. Raises UsageError if a file cannot be used."""
    newest = _Newest(tls)
    # The stubs do not know that the second may say None: nothing has changed.
    fetch: Any = newest.if_changed
    return grpc.dynamic_ssl_server_credentials(newest.configuration(), fetch, tls.client_ca is not None)


def channel_credentials(tls: ClientTls) -> grpc.ChannelCredentials:
    """Return the credentials of a channel. Raises UsageError if a file cannot be used."""
    client_context(tls)  # says what is wrong with the files, which the library does not
    return grpc.ssl_channel_credentials(
        root_certificates=_bytes(tls.ca),
        private_key=_bytes(tls.key),
        certificate_chain=_bytes(tls.certificate),
    )


class _Newest:
    """The certificate of the listener as its files have it now."""

    def __init__(self, tls: ServerTls) -> None:
        self._tls = tls
        self._seen = signature(tls.files)

    def configuration(self) -> grpc.ServerCertificateConfiguration:
        """Read the files. Raises UsageError if they do not belong together."""
        tls = self._tls
        server_context(tls)
        pair = (tls.key.read_bytes(), tls.certificate.read_bytes())
        return grpc.ssl_server_certificate_configuration([pair], root_certificates=_bytes(tls.client_ca))

    def if_changed(self) -> grpc.ServerCertificateConfiguration | None:
        """Return a new one if the files have changed and can be used; called by a thread of the library."""
        now = signature(self._tls.files)
        if now == self._seen:
            return None
        self._seen = now
        try:
            return self.configuration()
        except (UsageError, OSError) as error:
            log.warning("a renewed certificate cannot be used; the one before goes on", why=str(error))
            return None


def _bytes(path: Path | None) -> bytes | None:
    return None if path is None else path.read_bytes()
