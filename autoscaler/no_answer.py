"""Why somebody gave no answer, in words for people: `10.0.0.5:8082: connection refused`.

The texts of the HTTP library tell of its insides (`ssl:default`), of errno and of tuples. Everybody who
shows such an error asks here.
"""

import os
import ssl

import aiohttp

_Connecting = aiohttp.ClientConnectorError | aiohttp.ClientConnectorCertificateError


def why_no_answer(error: Exception) -> str:
    """Return address and reason of `error`; the reason alone where the connection stood already."""
    match error:
        case aiohttp.ClientConnectorDNSError():
            return f"{error.host}: no address is known for this name"
        case aiohttp.ClientConnectorError() | aiohttp.ClientConnectorCertificateError():
            host = f"[{error.host}]" if ":" in error.host else error.host
            return f"{host}:{error.port}: {_why_no_connection(error)}"
        case TimeoutError():
            return "no answer in time"
        case OSError():
            return _of_system(error)
    return _WORDS.get(type(error)) or str(error) or type(error).__name__


_WORDS: dict[type[Exception], str] = {
    aiohttp.ServerDisconnectedError: "the connection was closed before the answer",
    aiohttp.ClientPayloadError: "the answer broke off",
}


def _why_no_connection(error: _Connecting) -> str:
    match error:
        case aiohttp.ClientConnectorCertificateError():
            return f"its certificate is not trusted: {_of_tls(error.certificate_error)}"
        case aiohttp.ClientConnectorSSLError():
            return f"no TLS: {_of_tls(error.os_error)}"
    return _of_system(error.os_error)


def _of_tls(error: Exception) -> str:
    """Return `self-signed certificate`, or `wrong version number` of a server in plain text."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message or str(error)
    reason = error.reason if isinstance(error, ssl.SSLError) else ""
    return reason.replace("_", " ").lower() if reason else str(error)


def _of_system(error: OSError) -> str:
    """Return what the system calls it; where several addresses failed in different ways, all they said."""
    if error.errno is not None and error.errno > 0:
        return os.strerror(error.errno).lower()
    return error.strerror or str(error) or type(error).__name__
