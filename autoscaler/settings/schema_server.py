"""The keys that say which kind of model server the replicas of a pool are."""

from typing import Annotated, Literal

from autoscaler.model_servers.openai import OpenAI
from autoscaler.model_servers.plain_http import PlainHttp
from autoscaler.model_servers.triton import Triton
from autoscaler.proxy.batch.options import BatchingOptions, Mode
from autoscaler.settings.grpc_port import BESIDE_HTTP, GrpcPort
from autoscaler.settings.rules import each_once, no_use
from autoscaler.settings.section import Section, default
from autoscaler.settings.values import (
    Choice,
    Count,
    Duration,
    GrpcPortKind,
    OrNone,
    Share,
    Switch,
    Text,
    UrlPath,
    YesNo,
)
from autoscaler.settings.written import Written

HTTP, GRPC = "http", "grpc"
_SOME_TIME = Duration(least=0.001)
"""For what must take some time."""


class PlainHttpServer(Section):
    """`model_servers.plain_http`."""

    kind: Literal["plain_http"] = "plain_http"
    ready_path: Annotated[str, UrlPath()] = default(PlainHttp, "ready_path")
    probe_timeout: Annotated[float, _SOME_TIME] = default(PlainHttp, "timeout")


def _model_to_load(server: Written) -> None:
    if server["load_model"] and server["model"] is None:
        server.note("load_model", "got true, and no model is named", "", "name it as model, or remove it")


def _port_to_probe(server: Written) -> None:
    if server["probe_over"] == GRPC and server["grpc_port"] is None:
        remedy = "say where they take gRPC, or probe over http"
        server.note("probe_over", "got grpc, and grpc_port is none", "", remedy)


def _batches_of_one(server: Written) -> None:
    if server["batching"] != "off" and server["batch_rows_max"] == 1:
        remedy = "write more, or batching: off if nothing shall be merged"
        server.note("batch_rows_max", "got 1, by which nothing is ever merged", "2 or more, or none", remedy)


def _merges_nothing(server: Written) -> str:
    return "but batching is off" if server["batching"] == "off" else ""


class TritonServer(Section):
    """`model_servers.triton`."""

    kind: Literal["triton"]
    model: Annotated[str | None, OrNone(Text())] = default(Triton, "model")
    probe_timeout: Annotated[float, _SOME_TIME] = default(Triton, "timeout")
    grpc_port: Annotated[GrpcPort | None, OrNone(GrpcPortKind())] = BESIDE_HTTP
    probe_over: Annotated[str, Choice((HTTP, GRPC))] = HTTP
    load_model: Annotated[bool, YesNo()] = default(Triton, "load_model")
    batching: Annotated[Mode, Switch("auto")] = default(BatchingOptions, "mode")
    batch_rows_max: Annotated[int | None, OrNone(Count(least=1))] = default(BatchingOptions, "rows_max")
    batch_time_max: Annotated[float | None, OrNone(_SOME_TIME)] = None
    batch_check: Annotated[float, Share()] = default(BatchingOptions, "check_ratio")

    RULES = (
        _model_to_load,
        _port_to_probe,
        _batches_of_one,
        *no_use(
            ("batch_rows_max", "batch_time_max", "batch_check"),
            _merges_nothing,
            "write batching: auto, or remove it",
        ),
    )

    @property
    def batching_options(self) -> BatchingOptions:
        """Return the options of batching."""
        return BatchingOptions(self.batching, self.batch_rows_max, self.batch_check)


def _model_is_one_of_models(server: Written) -> None:
    models = server.raw("models")
    if isinstance(models, list) and server["model"] in models:
        at = models.index(server["model"])
        server.note(("models", at), f"got {models[at]}, which is server.model", "", "remove it")


class OpenAIServer(Section):
    """`model_servers.openai`."""

    kind: Literal["openai"]
    model: Annotated[str | None, OrNone(Text())] = default(OpenAI, "model")
    models: tuple[Annotated[str, Text()], ...] = ()
    probe_timeout: Annotated[float, _SOME_TIME] = default(OpenAI, "timeout")

    RULES = (each_once("models", "remove it"), _model_is_one_of_models)
