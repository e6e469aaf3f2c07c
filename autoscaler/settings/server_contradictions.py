"""Rules between what a pool says of its servers and of their slots."""

from autoscaler.settings.document import Document, KeyPath
from autoscaler.settings.value_at import value_at


def note_auto_slots(document: Document, pool: KeyPath) -> None:
    """Find bounds for slots that are not found out, and one on tokens that nobody counts."""
    slots = document.at((*pool, "slots_per_replica"))
    for name in ("service_time", "token_time"):
        path = (*pool, "auto_slots", name)
        if value_at(document, path) is not None and slots != "auto":
            fault = f"got {document.at(path)}, but slots_per_replica is {1 if slots is None else slots}"
            document.note(path, fault, "", "write slots_per_replica: auto, or remove it")
            return
    kind = document.at((*pool, "server", "kind"))
    if value_at(document, path) is not None and kind != "openai":
        remedy = "write service_time, or remove it"
        document.note(path, "got a time, where no tokens are counted", "servers of kind openai", remedy)


def note_probe_over(document: Document, pool: KeyPath) -> None:
    """Find local replicas that shall be asked at a gRPC port: it is not known before they are started."""
    path = (*pool, "server", "probe_over")
    if value_at(document, path) == "grpc" and document.at((*pool, "platform", "kind")) == "local":
        allowed = "http, for replicas that are started here"
        document.note(path, "got grpc", allowed, "remove it; they have an HTTP port of their own")
