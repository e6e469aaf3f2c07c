"""What a file may not say to one of the commands, though it may to another.

run         measures and decides: its pools have no `demand`
sidecar     measures for somebody else who decides: its servers run already, or it is told of them
controller  decides on what others measure: each of its pools says where (`demand`)
"""

from typing import Literal

from autoscaler.settings.document import Document, KeyPath
from autoscaler.settings.value_at import value_at

Command = Literal["run", "sidecar", "controller"]


_CONTROL_INTERVAL_MIN = 1.0
"""Sidecars tell of whole seconds, so that a shorter interval of a controller would often hold none [s]."""


def note_for_command(document: Document, command: Command) -> None:
    """Add what `command` cannot do to the problems of `document`."""
    pools = document.at(("pools",))
    for name, pool in pools.items() if isinstance(pools, dict) else ():
        if isinstance(pool, dict):
            _note_demand(document, ("pools", name), command)
            _note_servers(document, ("pools", name), command)
            if command != "run":
                _note_signals(document, ("pools", name), command)
                _note_substitute(document, ("pools", name), command)
    for key in ("lock_file", "lease"):
        named = document.at(("leadership", key))
        if command != "controller" and named not in (None, "none"):
            fault = f"got {named}, and `autoscaler {command}` has nobody to lead"
            document.note(("leadership", key), fault, "", "remove it, or use `autoscaler controller`")
    interval = value_at(document, ("control_interval",))
    if command == "controller" and interval is not None and interval < _CONTROL_INTERVAL_MIN:
        allowed = f"{_CONTROL_INTERVAL_MIN:g}s or more, for sidecars tell of whole seconds"
        document.note(("control_interval",), f"got {interval:g}s", allowed, "raise it; 10s suits most")


def _note_demand(document: Document, pool: KeyPath, command: Command) -> None:
    path, given = (*pool, "demand"), document.at((*pool, "demand"))
    if command == "controller" and given is None:
        remedy = "write where it is measured, such as demand: {kind: list, urls: [http://10.0.0.5:8082]}"
        document.note(path, "missing", "", f"{remedy}, or use `autoscaler run`, which measures it itself")
    elif command != "controller" and given is not None:
        fault = f"got a place to read it from, and `autoscaler {command}` measures it itself"
        document.note(path, fault, "", "remove it, or use `autoscaler controller`")
    if document.at((*path, "doors")) == "proxies" and document.at((*pool, "slots_per_replica")) == "auto":
        remedy = "write how many requests a server takes at a time"
        document.note(
            (*pool, "slots_per_replica"), "got auto, and slots that are divided must be known", "", remedy
        )


def _note_servers(document: Document, pool: KeyPath, command: Command) -> None:
    path = (*pool, "platform", "kind")
    kind = document.at(path)
    if command == "sidecar" and isinstance(kind, str) and kind not in ("static", "controller"):
        remedy = (
            "write platform: {kind: static, urls: [http://127.0.0.1:8000]} with the server beside it, or "
            "{kind: controller} for one of several proxies before the same servers"
        )
        document.note(path, f"got {kind}, for a sidecar", "static or controller", remedy)
    elif command == "sidecar" and kind == "controller":
        _note_what_is_told(document, pool)
    elif kind == "controller":
        remedy = f"name what `autoscaler {command}` scales, or use `autoscaler sidecar`"
        document.note(path, f"got controller, and `autoscaler {command}` is told by none", "", remedy)
    elif command == "controller" and kind == "local":
        remedy = "name a platform that others can see, or use `autoscaler run`"
        document.note(path, "got local, and a controller sends no requests to what it starts", "", remedy)


def _note_what_is_told(document: Document, pool: KeyPath) -> None:
    """Find what a proxy cannot set, because the controller that tells it its replicas does."""
    path = (*pool, "slots_per_replica")
    if document.at(path) is not None:
        remedy = "remove it here, and write it in the file of the controller"
        document.note(path, f"got {document.at(path)}, and a controller tells the slots", "", remedy)
    path = (*pool, "server", "batching")
    if document.at(path) not in (None, "off", False):
        fault = f"got {document.at(path)}, and proxies that share servers merge no requests"
        document.note(path, fault, "off", "remove it, and let the batcher of the servers do it")


def _note_signals(document: Document, pool: KeyPath, command: Command) -> None:
    if document.at((*pool, "signals")):
        fault = f"got some, which `autoscaler {command}` does not read"
        document.note((*pool, "signals"), fault, "", "remove them, or use `autoscaler run`")


def _note_substitute(document: Document, pool: KeyPath, command: Command) -> None:
    path = (*pool, "substitute")
    if (other := document.at(path)) not in (None, "none"):
        fault = f"got {other}, and `autoscaler {command}` hands no requests over to another pool"
        document.note(path, fault, "", "remove it, or use `autoscaler run`, which has the queues of both")
