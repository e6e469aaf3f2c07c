"""Rules between the sections of one pool: its servers, their slots, its platform, its demand.

They look at the file as it was written (`written`), so that a mistake elsewhere hides none of them.
"""

from autoscaler.dispatch.priority_class import DEFAULT_CLASSES
from autoscaler.settings.document import dotted, shown
from autoscaler.settings.grpc_port import http_port
from autoscaler.settings.rules import no_use
from autoscaler.settings.values import did_you_mean
from autoscaler.settings.written import Key, Rule, Written

_AUTO_SLOTS = ("service_time", "token_time", "max")
_PORT_MAX = 65_535


def _slots_are_set(pool: Written) -> str:
    slots = pool["slots_per_replica"]
    return "" if slots is None else f"but slots_per_replica is {slots}"


def _tokens_that_nobody_counts(pool: Written) -> None:
    key = ("auto_slots", "token_time")
    if pool[key] is not None and not _slots_are_set(pool) and pool.raw(("server", "kind")) != "openai":
        remedy = "write service_time, or remove it"
        pool.note(key, "got a time, where no tokens are counted", "servers of kind openai", remedy)


def _probes_at_a_port_not_known(pool: Written) -> None:
    """Find local replicas that shall be asked at a gRPC port: it is not known before they are started."""
    key = ("server", "probe_over")
    if pool.raw(("platform", "kind")) == "local" and pool[key] == "grpc":
        allowed = "http, for replicas that are started here"
        pool.note(key, "got grpc", allowed, "remove it; they have an HTTP port of their own")


def _sleepers_that_cannot_sleep(pool: Written) -> None:
    key, kind = ("platform", "sleepers_max"), pool.raw(("server", "kind")) or "plain_http"
    if pool.raw(("platform", "kind")) == "local" and kind != "openai" and pool[key]:
        fault = f"got {pool[key]}, and servers of kind {kind} cannot sleep"
        pool.note(key, fault, "", "set it to 0, or server.kind to openai if they are vLLM")


def _more_replicas_than_gpus(pool: Written) -> None:
    if pool.raw(("platform", "kind")) != "local":
        return
    key: Key = ("scaling", "replicas_min")
    gpus, each = len(pool["platform", "gpus"]), pool["platform", "replicas_per_gpu"]
    room = gpus // pool["platform", "gpus_per_replica"] * each
    if gpus and pool[key] > room:
        allowed = f"at most {room}, for platform.gpus has room for no more"
        remedy = "lower it, list more GPUs, or raise replicas_per_gpu"
        pool.note(key, f"got {pool[key]}", allowed, remedy)


def _class_that_there_is_not(pool: Written) -> None:
    """Find a default class that the queue does not have; one that is not written may be any."""
    key, written = ("route", "priority_class"), pool.raw(("queue", "classes"))
    known = list(written) if isinstance(written, dict) else [each.name for each in DEFAULT_CLASSES]
    if pool.has(key) and known and pool[key] not in known:
        classes = dotted((*pool.path, "queue", "classes"))
        remedy = did_you_mean(pool[key], known) or f"name one of them, or add it to {classes}"
        pool.note(key, f"got {shown(pool[key])}", " or ".join(map(str, known)), remedy)


def _grpc_where_http_is(pool: Written) -> None:
    key = ("server", "grpc_port")
    if pool.raw(("server", "kind")) != "triton" or pool.raw(("platform", "kind")) != "static":
        return
    if (port := pool[key]) is None:
        return
    given = shown(pool.raw(key) if pool.has(key) else "port+1")
    for url in pool["platform", "urls"]:
        target = int(port.target(url).rpartition(":")[2])
        if not 0 < target <= _PORT_MAX:
            pool.note(key, f"got {given}, which is no port beside {url}", "", "write its number")
        elif target == http_port(url):
            fault = f"got {given}, where {url} takes HTTP"
            pool.note(key, fault, "", "name the port for gRPC, or write none if there is none")


def _servers_in_plain_text(pool: Written) -> str:
    if pool.raw(("platform", "kind")) != "static" or pool["tls", "grpc"]:
        return ""
    is_plain = all(url.startswith("http:") for url in pool["platform", "urls"])
    return "and every URL of the pool begins with http:" if is_plain else ""


POOL_RULES: tuple[Rule, ...] = (
    *no_use(
        tuple(("auto_slots", name) for name in _AUTO_SLOTS),
        _slots_are_set,
        "write slots_per_replica: auto, or remove it",
    ),
    _tokens_that_nobody_counts,
    _probes_at_a_port_not_known,
    _sleepers_that_cannot_sleep,
    _more_replicas_than_gpus,
    _class_that_there_is_not,
    _grpc_where_http_is,
    *no_use(
        tuple(("tls", name) for name in ("ca", "server_name", "certificate")),
        _servers_in_plain_text,
        "write https: there, or tls.grpc: true, or remove it",
    ),
)
"""All of them."""
