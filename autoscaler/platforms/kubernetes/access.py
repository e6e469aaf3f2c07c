"""How the API server is reached, and who we are to it: as kubectl would, or as the service account of a pod.

The client library reads kubeconfigs (certificates, tokens, plugins that make tokens) and the files of a
service account. What it is not used for is the calls themselves: they are few, go to kinds of resources that
no library knows beforehand, and must be watched closely. It is imported only when it is needed, and beside
the event loop, for it is large (40 MB, half a second).

Tokens are renewed by the library; where one is refused all the same, or the certificate of the server is not
that of the authority any more, everything is read anew.
"""

import asyncio
import os
import ssl
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from importlib import import_module
from math import ceil
from pathlib import Path
from typing import Any

from autoscaler.errors import PlatformUnavailable

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where every pod finds its token, the authority of the API server, and its namespace."""

_PLUGIN_MAX = 30.0
"""A plugin that makes tokens must have made one within it [s]."""
_ALARMED = """
import os, signal, sys
signal.alarm(int(sys.argv[1]))
try:
    os.execvp(sys.argv[2], sys.argv[2:])
except OSError as error:
    sys.exit(f"{sys.argv[2]}: {error.strerror}")
"""
"""Becomes the command that follows the seconds; the alarm goes on and ends it."""
_IN_CLUSTER = "KUBERNETES_SERVICE_HOST"


@dataclass(frozen=True, slots=True)
class Access:
    """How the API server is reached."""

    host: str
    """Base URL."""
    namespace: str
    """Where we are at home."""
    tls: ssl.SSLContext | None
    server_name: str | None
    """Name that its certificate must have, where that is not its host."""
    proxy: str | None
    """URL of the proxy to go through; None if there is none, or the surroundings name it."""
    authorization: Callable[[], Awaitable[str | None]]
    """The value of the header that says who we are now; None for a client certificate."""


async def load_access(kubeconfig: Path | None = None, context: str | None = None) -> Access:
    """Read it from the files that the arguments, or the surroundings, name.

    Parameters
    ----------
    kubeconfig : Path or None
        None is the service account of this pod, or else what kubectl would use.
    context : str or None
        Of the kubeconfig; None is its current one.

    Raises
    ------
    PlatformUnavailable
        If there is none, or it cannot be used; the text says what to do.
    """
    config = await asyncio.to_thread(import_module, "kubernetes_asyncio.config")
    _let_plugins_end(config.kube_config)
    client = await asyncio.to_thread(import_module, "kubernetes_asyncio.client")
    settings = client.Configuration()
    try:
        if kubeconfig is None and _IN_CLUSTER in os.environ:
            config.load_incluster_config(
                client_configuration=settings,
                token_filename=str(SERVICE_ACCOUNT / "token"),
                cert_filename=str(SERVICE_ACCOUNT / "ca.crt"),
            )
            namespace = (SERVICE_ACCOUNT / "namespace").read_text("utf-8").strip()
        else:
            _look_for(kubeconfig, config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION)
            file = None if kubeconfig is None else str(kubeconfig)
            async with asyncio.timeout(_PLUGIN_MAX):
                loader = await config.load_kube_config(
                    config_file=file,
                    context=context,
                    client_configuration=settings,
                    persist_config=False,
                )
            namespace = (loader.current_context or {}).get("context", {}).get("namespace") or "default"
        return _access(settings, namespace)
    except PlatformUnavailable:
        raise
    except Exception as error:  # a file may be half written, and hold anything; the library lets all through
        where = kubeconfig or "the kubeconfig or the service account of this pod"
        why = " ".join(_words(error).split())
        raise PlatformUnavailable(f"{where} cannot be used: {why}; set kubeconfig, or mend it") from error


def _look_for(kubeconfig: Path | None, usual: str) -> None:
    """Raise PlatformUnavailable if neither this file nor, if it is None, one of the `usual` ones is there."""
    if kubeconfig is not None:
        if not kubeconfig.exists():
            raise PlatformUnavailable(
                f"{kubeconfig} cannot be used: no such file; set kubeconfig, or mend it"
            )
    elif not any(Path(each).expanduser().exists() for each in usual.split(os.pathsep) if each):
        raise PlatformUnavailable(
            f"no cluster found: this is no pod, and there is no {usual}; "
            "set KUBECONFIG, or kubeconfig in the configuration, or run in a pod"
        )


def _let_plugins_end(library: Any) -> None:
    """Let a plugin end with its time, for the library forgets one that takes longer, and it would run on."""
    plugin: Any = library.ExecProvider
    if plugin.__name__ != "EndingPlugin":

        class EndingPlugin(plugin):
            args: list[str]

            def __init__(self, asked: Any) -> None:
                super().__init__(asked)
                self.args = [sys.executable, "-ISc", _ALARMED, str(ceil(_PLUGIN_MAX)), *self.args]

        library.ExecProvider = EndingPlugin


def _access(settings: Any, namespace: str) -> Access:
    async def authorization() -> str | None:
        try:
            async with asyncio.timeout(_PLUGIN_MAX):
                key: str | None = await settings.get_api_key_with_prefix("BearerToken")
        except Exception as error:  # whatever a plugin or a file does, it is no reason to end
            raise PlatformUnavailable(f"no token for {settings.host}: {_words(error)}") from error
        return key.strip() if key is not None else None  # a token file may end with a newline

    tls = None
    if settings.host.startswith("https:"):
        tls = ssl.create_default_context(cafile=settings.ssl_ca_cert)
        if settings.cert_file:
            tls.load_cert_chain(settings.cert_file, settings.key_file)
        if not settings.verify_ssl:  # as the kubeconfig says
            tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    host, name = settings.host.rstrip("/"), settings.tls_server_name
    return Access(host, namespace, tls, name, settings.proxy, authorization)


def _words(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return f"its plugin gave no token within {_PLUGIN_MAX:g} s"
    return str(error) or type(error).__name__
