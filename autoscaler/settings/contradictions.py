"""Rules between listeners, files and pools: values that are each allowed, and cannot all be meant.

The rules look at the file as it was written, not at sections that were found right, so that a mistake
elsewhere in the file hides none of them. A value that is wrong by itself takes no part. What a section, or
a pool, must hold to within itself stands there (`Section.RULES`).
"""

import os
import re
from collections.abc import Iterator
from itertools import combinations
from urllib.parse import urlsplit

from autoscaler.settings.document import Document, KeyPath, dotted
from autoscaler.settings.platform_rules import base
from autoscaler.settings.rules import in_order
from autoscaler.settings.schema import FileSection
from autoscaler.settings.section import sections_in
from autoscaler.settings.value_at import value_at
from autoscaler.settings.written import Written, keep
from autoscaler.units import Address

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}")
_EVERY_INTERFACE = ("", "0.0.0.0", "::")
_DEFAULT_PORTS = {"http": 80, "https": 443}
_WRITTEN_FILES: tuple[KeyPath, ...] = (
    ("history",),
    ("state",),
    ("http", "access_log", "path"),
    ("leadership", "lock_file"),
)
_READ_FILES: tuple[KeyPath, ...] = (
    ("tenants", "keys_file"),
    ("admin_access", "token_file"),
    *(
        (above, key)
        for above in ("tls", "admin_access", "keda")
        for key in ("certificate", "key", "client_ca")
    ),
)


def note_contradictions(document: Document) -> None:
    """Add what does not go together to the problems of `document`."""
    for path, section in sections_in(FileSection, document):
        keep(section.RULES, Written(document, path, section))
    _note_pool_names(document)
    _note_same_address(document)
    _note_same_file(document)
    _note_same_route(document)
    _note_same_model(document)
    _note_servers(document)
    _note_control_interval(document)
    for name in _pools(document):
        _note_names(document, ("pools", name, "queue", "classes"), "class")


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


def _note_same_address(document: Document) -> None:
    for first, second in combinations(_listeners(document), 2):
        one, other = value_at(document, first), value_at(document, second)
        if one and other and _overlap(one, other):
            path, kept, there = (
                (second, first, one) if second in document.key_places else (first, second, other)
            )
            fault = f"got {document.at(path)}, where {dotted(kept)} ({there}) is already"
            document.note(path, fault, "", "choose another port for one of them")


def _listeners(document: Document) -> list[KeyPath]:
    listeners: list[KeyPath] = [("listen",), ("admin",)]
    if _has_triton(document):
        listeners.append(("grpc", "listen"))
    if _has_keda(document):
        listeners.append(("keda", "listen"))
    return listeners


def _note_same_file(document: Document) -> None:
    """Find a file that this program writes, and that has another use too."""
    first_with: dict[str, KeyPath] = {}
    for path in (*_WRITTEN_FILES, *_READ_FILES):
        if (file := value_at(document, path)) is None:
            continue
        first = first_with.setdefault(os.path.normpath(file), path)
        if first != path and first in _WRITTEN_FILES:
            here, other = (path, first) if path in document.key_places else (first, path)
            fault = f"got {document.at(here)}, which is {dotted(other)} too"
            document.note(here, fault, "", "give each a file of its own")


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
    first_with: dict[str, str] = {}
    for name in _pools(document):
        is_served_here = document.at(("pools", name, "demand")) is None
        for path, url in _urls(document, ("pools", name, "platform", "urls")):
            first = first_with.setdefault(base(url), name)
            if first != name:
                remedy = "give each server to one pool, for its slots are counted there"
                document.note(path, f"got {url}, which pool {first} has too", "", remedy)
            if is_served_here:
                _note_itself(document, path, url, "name the model server, or listen elsewhere")
        for path, url in _urls(document, ("pools", name, "demand", "urls")):
            _note_itself(document, path, url, "name the sidecar, or set admin to another port")


def _urls(document: Document, above: KeyPath) -> Iterator[tuple[KeyPath, str]]:
    urls = document.at(above)
    for index, url in enumerate(urls if isinstance(urls, list) else []):
        if isinstance(url, str):
            yield (*above, index), url


def _note_itself(document: Document, path: KeyPath, url: str, remedy: str) -> None:
    address = _address_of(url)
    for listener in _listeners(document):
        own = value_at(document, listener)
        if address and own and _is_at(address, own):
            document.note(path, f"got {url}, where this program itself listens ({own})", "", remedy)


def _note_control_interval(document: Document) -> None:
    """Arrivals are counted once each control interval: no bin is shorter, and no reading of them rarer."""
    file, control = Written(document, (), FileSection), ("control_interval",)
    for name in _pools(document):
        keep((in_order(control, ("pools", name, "forecast", "interval")),), file)
        if document.at(("pools", name, "demand")) is not None:
            keep((in_order(("pools", name, "demand", "interval"), control),), file)


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
