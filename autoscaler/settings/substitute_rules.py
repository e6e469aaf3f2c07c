"""Rules between a pool and the one that stands in for it (`substitute`): whether it can.

A request goes over as it is, so the other pool must take it as it is: servers of the same kind that take the
same protocols, and a queue of the same classes.
"""

from autoscaler.dispatch.priority_class import DEFAULT_CLASSES
from autoscaler.settings.values import did_you_mean
from autoscaler.settings.written import Key, Rule, Written

_ONE_LEVEL = "a pool that stands in has none itself; remove one of the two"


def _can_stand_in(file: Written) -> None:
    named = {pool: other for pool, other in file.of_each("pools", "substitute").items() if other is not None}
    for pool, other in named.items():
        fault, allowed, remedy = _what_is_wrong(file, str(pool), other, named)
        if fault:
            file.note(("pools", pool, "substitute"), fault, allowed, remedy)


def _what_is_wrong(file: Written, pool: str, other: str, named: dict[str, str]) -> tuple[str, str, str]:
    """Return what is wrong, what is allowed, and the remedy; nothing if `other` can stand in for `pool`."""
    there = [str(name) for name in file.raw("pools") if str(name) != pool]
    if other == pool:
        return f"got {other}, which is this pool itself", "", "name another pool, or remove it"
    if other not in there:
        remedy = did_you_mean(other, there) or "add it, or remove this"
        return f"got {other}, and there is no such pool", " or ".join(there), remedy
    if other in named:
        return f"got {other}, for which {named[other]} stands in", "", _ONE_LEVEL
    if file.raw(("pools", pool, "platform", "kind")) == "static":
        fault = "got one for servers of kind static, of which none is ordered, so that none can be missing"
        return fault, "", "remove it"
    for what, remedy, of in _ALIKE:
        here, elsewhere = of(file, pool), of(file, other)
        if here != elsewhere:
            return f"got {other}, whose {what} {elsewhere}, and those here {here}", "", remedy
    return "", "", ""


def _kind(file: Written, pool: str) -> str:
    return f"are of kind {file.raw(('pools', pool, 'server', 'kind')) or 'plain_http'}"


def _grpc(file: Written, pool: str) -> str:
    """Say whether servers take gRPC: where they are started here, their command says so."""
    if file.raw(("pools", pool, "server", "kind")) != "triton":
        return "take no gRPC"
    platform: Key = ("pools", pool, "platform")
    if file.raw((*platform, "kind")) == "local":
        takes = "{grpc_port}" in f"{file.raw((*platform, 'command'))}{file.raw((*platform, 'env'))}"
    else:
        takes = file.raw(("pools", pool, "server", "grpc_port")) != "none"
    return "take gRPC" if takes else "take no gRPC"


def _classes(file: Written, pool: str) -> str:
    key: Key = ("pools", pool, "queue", "classes")
    written = file.raw(key)
    names = written if isinstance(written, dict) and written else [each.name for each in DEFAULT_CLASSES]
    return f"are {', '.join(sorted(map(str, names)))}"


_ALIKE = (
    ("servers", "name a pool of the same kind, or remove it", _kind),
    ("servers", "let both take it, or neither", _grpc),
    ("classes", "give both queues the same classes", _classes),
)
"""What must be the same of both, the remedy, and how it is told."""

SUBSTITUTE_RULES: tuple[Rule, ...] = (_can_stand_in,)
"""All of them."""
