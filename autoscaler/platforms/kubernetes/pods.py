"""What pods and EndpointSlices say of the replicas; values in, values out.

A replica is a pod whose endpoint is ready. One that terminates finishes what it holds. A pod that is neither
is starting, unless it cannot be scheduled (for lack of GPUs, say) or has been trying for too long: what does
not come is not counted on.

Sources: API reference of discovery.k8s.io/v1 EndpointSlice (conditions; nil means ready) and core/v1 Pod.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from autoscaler.remote_fleet import Member

UNSCHEDULABLE_AFTER = 30.0
"""A pod for which no node was found for so long is not counted on [s]: new nodes take minutes, and when they
are there it is counted again."""

_OVER = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class PodCounts:
    """Pods that are wanted, which means neither over nor terminating [1]."""

    live: int
    """All of them."""
    starting: int
    """Of those, neither ready nor hopeless."""
    unschedulable: int
    """Of those, without a node for too long."""
    why: str | None = None
    """What the scheduler says of one of those."""


def members_of(
    slices: Iterable[Any], pods: Mapping[str, Any], port: str | None, is_https: bool, leaving: Collection[str]
) -> list[Member]:
    """Return the replicas behind a Service.

    Parameters
    ----------
    slices : iterable of EndpointSlice
        All of the Service.
    pods : mapping of str to Pod
        By uid.
    port : str or None
        Name or number of their port; None takes the first.
    is_https : bool
        Whether they speak HTTPS.
    leaving : collection of str
        Uids of those that shall get nothing new.
    """
    found: dict[str, Member] = {}
    # A pod with two addresses is in two slices; IPv4 comes first, and one of them is enough.
    for each in sorted(slices, key=lambda each: (each["addressType"], each["metadata"]["name"])):
        number = _port_of(each, port)
        for endpoint in each.get("endpoints") or ():
            member = _member(endpoint, number, is_https, pods, leaving)
            if member is not None:
                found.setdefault(member.id, member)
    return list(found.values())


def count_pods(
    pods: Iterable[Any], ready: Collection[str], wall_time: float, start_timeout: float
) -> PodCounts:
    """Count pods, of which those with a uid in `ready` are ready, at `wall_time` [s since the epoch]."""
    live = starting = unschedulable = 0
    why = None
    for pod in filter(is_live, pods):
        live += 1
        if pod["metadata"]["uid"] in ready:
            continue
        refused = _unschedulable(pod)
        if (
            refused is not None
            and wall_time - seconds_of(refused["lastTransitionTime"]) >= UNSCHEDULABLE_AFTER
        ):
            unschedulable, why = unschedulable + 1, refused.get("message") or refused.get("reason")
        elif wall_time - seconds_of(pod["metadata"]["creationTimestamp"]) < start_timeout:
            starting += 1
    return PodCounts(live, starting, unschedulable, why)


def is_live(pod: Any) -> bool:
    """Whether a pod is neither over nor terminating."""
    return "deletionTimestamp" not in pod["metadata"] and pod["status"].get("phase") not in _OVER


def seconds_of(text: str) -> float:
    """Return a time of the API, RFC 3339, as seconds since the epoch."""
    return datetime.fromisoformat(text).timestamp()


def _member(
    endpoint: Any, port: int | None, is_https: bool, pods: Mapping[str, Any], leaving: Collection[str]
) -> Member | None:
    conditions = endpoint.get("conditions") or {}
    uid = str((endpoint.get("targetRef") or {}).get("uid") or endpoint["addresses"][0])
    terminates = bool(conditions.get("terminating")) or "deletionTimestamp" in pods.get(uid, {}).get(
        "metadata", {}
    )
    is_ready = conditions.get("ready") is not False  # nil means ready
    if port is None or not (is_ready or terminates):
        return None
    address = str(endpoint["addresses"][0])
    host = f"[{address}]" if ":" in address else address
    url = f"{'https' if is_https else 'http'}://{host}:{port}"
    return Member(uid, url, is_draining=terminates or uid in leaving)


def _port_of(endpoint_slice: Any, port: str | None) -> int | None:
    """Return the number of the port that is meant; None if the slice does not have it."""
    for each in endpoint_slice.get("ports") or ():
        if port is None or port in (each.get("name"), str(each.get("port"))):
            return int(each["port"]) if each.get("port") is not None else None
    return None


def _unschedulable(pod: Any) -> Any:
    """Return the condition that says that no node was found; None if that is not so."""
    for condition in pod["status"].get("conditions") or ():
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return condition if condition.get("reason") == "Unschedulable" else None
    return None
