"""Rules between settings: values that are each allowed, and cannot all be meant.

The rules look at the file as it was written, not at sections that were found right, so that a mistake
elsewhere in the file hides none of them. A value that is wrong by itself takes no part.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any
from urllib.parse import urlsplit

from autoscaler.dispatch.priority_class import DEFAULT_CLASSES
from autoscaler.settings.document import Document, KeyPath, dotted
from autoscaler.settings.server_contradictions import note_auto_slots, note_probe_over
from autoscaler.settings.value_at import value_at
from autoscaler.settings.values import did_you_mean
from autoscaler.units import Address, format_duration, format_fraction

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}")
_EVERY_INTERFACE = ("0.0.0.0", "::")
_DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class _Order:
    """`below` times `factor` must not be above `above`."""

    below: KeyPath
    above: KeyPath
    show: Callable[[Any], str]
    factor: int = 1
    strict: bool = False


_ORDERS_IN_POOL = (
    _Order(("scaling", "replicas_min"), ("scaling", "replicas_max"), str),
    _Order(("objective", "utilization_low"), ("objective", "utilization_high"), format_fraction, strict=True),
    _Order(("objective", "wait"), ("queue", "wait_max"), format_duration),
    _Order(("forecast", "interval"), ("forecast", "season"), format_duration, factor=2),
    _Order(("forecast", "season"), ("forecast", "history_max"), format_duration),
)


def note_contradictions(document: Document) -> None:
    """Add what does not go together to the problems of `document`."""
    _note_pool_names(document)
    _note_same_address(document)
    _note_same_route(document)
    _note_same_model(document)
    _note_servers(document)
    _note_control_interval(document)
    for name in _pools(document):
        pool = ("pools", name)
        _note_names(document, (*pool, "queue", "classes"), "class")
        _note_unknown_class(document, pool)
        for order in _ORDERS_IN_POOL:
            _note_order(document, order, (*pool, *order.below), (*pool, *order.above))
        _note_replicas_without_gpu(document, pool)
        note_auto_slots(document, pool)
        note_probe_over(document, pool)


def _note_pool_names(document: Document) -> None:
    pools = document.at(("pools",))
    if pools == {}:
        document.note(("pools",), "got no pool", "one or more", "write a name, and its platform below it")
    _note_names(document, ("pools",), "pool")


def _note_names(document: Document, above: KeyPath, what: str) -> None:
    named = document.at(above)
    for name in named if isinstance(named, dict) else ():
        if not _NAME.fullmatch(str(name)):
            path = (*above, name)
            allowed = "a name of up to 63 letters, digits, _ - and ., because metrics and folders carry it"
            document.note(path, "got such a name", allowed, f"rename the {what}", document.key_places[path])


def _note_unknown_class(document: Document, pool: KeyPath) -> None:
    """Find a default class that the queue does not have; one that is not written may be any."""
    path = (*pool, "route", "priority_class")
    given, classes = document.at(path), document.at((*pool, "queue", "classes"))
    known = list(classes) if isinstance(classes, dict) else [each.name for each in DEFAULT_CLASSES]
    if isinstance(given, str) and known and given not in known:
        remedy = did_you_mean(given, known) or f"name one of them, or add it to {dotted(pool)}.queue.classes"
        document.note(path, f'got "{given}"', " or ".join(map(str, known)), remedy)


def _note_same_address(document: Document) -> None:
    listeners: list[KeyPath] = [("listen",), ("admin",)]
    if _has_triton(document):
        listeners.append(("grpc", "listen"))
    if _has_keda(document):
        listeners.append(("keda", "listen"))
    for first, second in combinations(listeners, 2):
        one, other = value_at(document, first), value_at(document, second)
        if one and other and _overlap(one, other):
            path, kept, there = (
                (second, first, one) if second in document.key_places else (first, second, other)
            )
            fault = f"got {document.at(path)}, where {dotted(kept)} ({there}) is already"
            document.note(path, fault, "", "choose another port for one of them")


def _has_triton(document: Document) -> bool:
    """Whether a pool may speak gRPC, so that there may be a listener for it."""
    return any(document.at(("pools", name, "server", "kind")) == "triton" for name in _pools(document))


def _has_keda(document: Document) -> bool:
    """Whether KEDA scales a pool, so that there is a listener for it."""
    return any(document.at(("pools", name, "platform", "kind")) == "keda" for name in _pools(document))


def _note_same_route(document: Document) -> None:
    first_with: dict[str, str] = {}
    for name in _served_here(document):
        path = ("pools", name, "route", "prefix")
        prefix = value_at(document, path)
        if prefix is None:
            continue
        first = first_with.setdefault(prefix.rstrip("/"), name)
        if first != name and not all(_models(document, each) for each in (first, name)):
            fault = f"got {prefix}, which pool {first} has too"
            remedy = f"give each pool a prefix of its own, such as /{name}"
            if all(_is_openai(document, each) for each in (first, name)):
                remedy += ", or name the model of each (server.model), by which it is then chosen"
            document.note(path, fault, "", remedy)


def _note_same_model(document: Document) -> None:
    """Find a model by whose name two pools of one prefix would be chosen."""
    first_with: dict[tuple[str, str], str] = {}
    for name in _served_here(document):
        prefix = value_at(document, ("pools", name, "route", "prefix")) or ""
        for path, model in _models(document, name):
            first = first_with.setdefault((prefix.rstrip("/"), model), name)
            if first != name:
                fault = f"got {model}, which pool {first} has too, at the same prefix"
                remedy = "give each model to one pool, or each pool a prefix of its own"
                document.note(path, fault, "", remedy)


def _is_openai(document: Document, pool: str) -> bool:
    return document.at(("pools", pool, "server", "kind")) == "openai"


def _models(document: Document, pool: str) -> list[tuple[KeyPath, str]]:
    """Return the names by which a pool of language models is chosen, and where they are written."""
    if not _is_openai(document, pool):
        return []
    server: KeyPath = ("pools", pool, "server")
    more = document.at((*server, "models"))
    places: list[KeyPath] = [(*server, "model")]
    places += [(*server, "models", at) for at in range(len(more) if isinstance(more, list) else 0)]
    models = [(path, document.at(path)) for path in places]
    return [(path, model) for path, model in models if isinstance(model, str) and model != "none"]


def _note_servers(document: Document) -> None:
    """Find a server that is in two pools, whose slots would be counted twice, and this program itself."""
    listen = value_at(document, ("listen",))
    first_with: dict[str, str] = {}
    for name in _pools(document):
        urls = document.at(("pools", name, "platform", "urls"))
        for index, url in enumerate(urls if isinstance(urls, list) else []):
            path = ("pools", name, "platform", "urls", index)
            if not isinstance(url, str):
                continue
            first = first_with.setdefault(url.rstrip("/"), name)
            if first != name:
                remedy = "give each server to one pool, for its slots are counted there"
                document.note(path, f"got {url}, which pool {first} has too", "", remedy)
            is_served_here = document.at(("pools", name, "demand")) is None
            if is_served_here and listen and (address := _address_of(url)) and _is_at(address, listen):
                fault = f"got {url}, where this program itself listens ({listen})"
                document.note(path, fault, "", "name the model server, or listen elsewhere")


def _note_replicas_without_gpu(document: Document, pool: KeyPath) -> None:
    gpus = document.at((*pool, "platform", "gpus"))
    least = value_at(document, (*pool, "scaling", "replicas_min"))
    each = value_at(document, (*pool, "platform", "replicas_per_gpu"))
    together = value_at(document, (*pool, "platform", "gpus_per_replica"))
    if not (isinstance(gpus, list) and gpus and least and each and together):
        return
    room = len(gpus) // together * each
    if least > room:
        path = (*pool, "scaling", "replicas_min")
        allowed = f"at most {room}, for platform.gpus has room for no more"
        document.note(path, f"got {least}", allowed, "lower it, list more GPUs, or raise replicas_per_gpu")


def _note_control_interval(document: Document) -> None:
    """Arrivals are counted once each control interval, so no bin of a forecast can be shorter."""
    control_interval = value_at(document, ("control_interval",))
    for name in _pools(document):
        path = ("pools", name, "forecast", "interval")
        interval = value_at(document, path)
        if control_interval and interval and control_interval > interval:
            allowed = f"at most {dotted(path)} ({format_duration(interval)})"
            fault = f"got {format_duration(control_interval)}"
            document.note(("control_interval",), fault, allowed, "lower it, or raise the other")
            return


def _note_order(document: Document, order: _Order, below: KeyPath, above: KeyPath) -> None:
    low, high = value_at(document, below), value_at(document, above)
    if low is None or high is None or low * order.factor < high:
        return
    if low * order.factor == high and not order.strict:
        return
    if below in document.key_places:
        bound = (
            "less than"
            if order.strict
            else "at most"
            if order.factor == 1
            else f"at most 1/{order.factor} of"
        )
        allowed = f"{bound} {dotted(above)} ({order.show(high)})"
        document.note(below, f"got {order.show(low)}", allowed, "lower it, or raise the other")
    else:
        bound = (
            "more than"
            if order.strict
            else "at least"
            if order.factor == 1
            else f"at least {order.factor} times"
        )
        allowed = f"{bound} {dotted(below)} ({order.show(low)})"
        document.note(above, f"got {order.show(high)}", allowed, "raise it, or lower the other")


def _pools(document: Document) -> Iterator[str]:
    pools = document.at(("pools",))
    if isinstance(pools, dict):
        yield from (name for name, pool in pools.items() if isinstance(pool, dict))


def _served_here(document: Document) -> Iterator[str]:
    """Yield the pools whose requests come here; of the others only the demand is read."""
    return (name for name in _pools(document) if document.at(("pools", name, "demand")) is None)


def _overlap(one: Address, other: Address) -> bool:
    same_host = one.host == other.host or one.host in _EVERY_INTERFACE or other.host in _EVERY_INTERFACE
    return same_host and one.port == other.port != 0


def _is_at(server: Address, listen: Address) -> bool:
    """Whether a server is where we listen; another machine's is not, though we listen everywhere."""
    is_here = server.host.startswith("127.") or server.host in ("::1", *_EVERY_INTERFACE)
    return _overlap(server, listen) and (server.host == listen.host or is_here)


def _address_of(url: str) -> Address | None:
    try:
        parts = urlsplit(url)
        port = parts.port or _DEFAULT_PORTS.get(parts.scheme, 0)
    except ValueError:
        return None
    return Address({"localhost": "127.0.0.1"}.get(parts.hostname or "", parts.hostname or ""), port)
