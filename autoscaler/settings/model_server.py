"""The model server that the options name."""

from collections.abc import Callable
from functools import partial

from autoscaler.model_servers.openai import OpenAI
from autoscaler.model_servers.plain_http import PlainHttp
from autoscaler.model_servers.triton import Triton
from autoscaler.settings.grpc_port import BESIDE_HTTP
from autoscaler.settings.settings import ServerOptions
from autoscaler.tls import ClientTls

AnyServer = PlainHttp | Triton | OpenAI


def model_server(
    options: ServerOptions, tls: ClientTls | None = None, *, grpc_tls: bool = False
) -> AnyServer:
    """Make it; close it when it is no longer asked. With `grpc_tls` its gRPC port wants TLS, too."""
    return server_maker(options, tls, grpc_tls=grpc_tls)()


def server_maker(
    options: ServerOptions, tls: ClientTls | None = None, *, grpc_tls: bool = False
) -> Callable[[], AnyServer]:
    """Return what makes it: picklable, and of no part that it does not need."""
    loads, merges = options.load_model, options.batching is not None and options.batching.mode == "on"
    match options.kind:
        case "triton" if options.probe_over == "grpc":
            target_of = (options.grpc_port or BESIDE_HTTP).target
            tls_of_grpc = tls if grpc_tls else None
            asked = (target_of, options.model, options.probe_timeout, tls_of_grpc)
            return partial(Triton.over_grpc, *asked, load_model=loads, merges=merges)
        case "triton":
            return partial(Triton, options.model, options.probe_timeout, tls, load_model=loads, merges=merges)
        case "openai":
            return partial(OpenAI, options.model, options.probe_timeout, tls)
        case _:
            return partial(PlainHttp, options.ready_path, options.probe_timeout, tls)
