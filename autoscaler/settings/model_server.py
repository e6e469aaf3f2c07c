"""The model server that the options name."""

from autoscaler.model_servers.openai import OpenAI
from autoscaler.model_servers.plain_http import PlainHttp
from autoscaler.model_servers.triton import Triton
from autoscaler.settings.grpc_port import BESIDE_HTTP
from autoscaler.settings.settings import ServerOptions
from autoscaler.tls import ClientTls


def model_server(
    options: ServerOptions, tls: ClientTls | None = None, *, grpc_tls: bool = False
) -> PlainHttp | Triton | OpenAI:
    """Make it; close it when it is no longer asked. With `grpc_tls` its gRPC port wants TLS, too."""
    loads, merges = options.load_model, options.batching is not None and options.batching.mode == "on"
    match options.kind:
        case "triton" if options.probe_over == "grpc":
            target_of = (options.grpc_port or BESIDE_HTTP).target
            tls_of_grpc = tls if grpc_tls else None
            asked = (target_of, options.model, options.probe_timeout, tls_of_grpc)
            return Triton.over_grpc(*asked, load_model=loads, merges=merges)
        case "triton":
            return Triton(options.model, options.probe_timeout, tls, load_model=loads, merges=merges)
        case "openai":
            return OpenAI(options.model, options.probe_timeout, tls)
        case _:
            return PlainHttp(options.ready_path, options.probe_timeout, tls)
