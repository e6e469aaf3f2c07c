"""The model server that the options name."""

from autoscaler.model_servers.openai import OpenAI
from autoscaler.model_servers.plain_http import PlainHttp
from autoscaler.model_servers.triton import Triton
from autoscaler.settings.settings import ServerOptions
from autoscaler.tls import ClientTls


def model_server(options: ServerOptions, tls: ClientTls | None = None) -> PlainHttp | Triton | OpenAI:
    """Make it; close it when it is no longer asked."""
    match options.kind:
        case "triton":
            return Triton(options.model, options.probe_timeout, tls)
        case "openai":
            return OpenAI(options.model, options.probe_timeout, tls)
        case _:
            return PlainHttp(options.ready_path, options.probe_timeout, tls)
