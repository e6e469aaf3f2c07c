"""What pods and EndpointSlices say of the replicas; values in, values out.

A replica is a pod whose endpoint is ready. One that terminates finishes what it holds. A pod that is neither
is starting, unless it cannot be scheduled (for lack of GPUs, say) or has been trying for too long: what does
not come is not counted on.

For how long a pod has been as it is, is measured here, from when it was first seen so. The times that stand
in it are those of other machines, whose clocks may be minutes apart.

Sources: API reference of discovery.k8s.io/v1 EndpointSlice (conditions; nil means ready) and core/v1 Pod.
"""

from collections import deque
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from autoscaler.remote_fleet import Member

UNSCHEDULABLE_AFTER = 30.0
"""A pod for which no node was found for so long is not counted on [s]: new nodes take minutes, and when they
are there it is counted again."""

MADE_WITHIN = 60.0
"""Pods that were asked for and have not been made after so long, for a quota say, are not counted on [s]."""

_OVER = ("Succeeded", "Failed")
_ON_ITS_WAY = ("ContainerCreating", "PodInitializing")
"""A container waits for these in every start."""


@dataclass(frozen=True, slots=True)
class PodCounts:
    """Pods that are wanted, which means neither over nor terminating [1]."""

    live: int = 0
    """All of them."""
    starting: int = 0
    """Of those, neither ready nor hopeless."""
    unschedulable: int = 0
    """Of those, without a node for too long."""
    stuck: int = 0
    """Of those, with a node, and not ready for too long."""
    why: str | None = None
    """What keeps pods from getting ready, for a person; None if nothing is known to."""


class PodAges:
    """For how long each pod has been in its state: with the same conditions, and as ready."""

    def __init__(self) -> None:
        self._since: dict[str, tuple[Any, float]] = {}

    def update(self, pods: Mapping[str, Any], ready: Collection[str], now: float) -> dict[str, float]:
        """Take in the pods by uid, and who is ready, at `now` [s, monotonic]; return the ages [s] by uid."""
        since = {}
        for uid, pod in pods.items():
            conditions = pod["status"].get("conditions") or ()
            state = (
                uid in ready,
                [(each["type"], each["status"], each.get("lastTransitionTime")) for each in conditions],
            )
            known = self._since.get(uid)
            since[uid] = known if known is not None and known[0] == state else (state, now)
        self._since = since
        return {uid: now - began for uid, (_, began) in since.items()}


class UnmadePods:
    """Pods that were asked for and are not there: for how long each has been missed."""

    def __init__(self) -> None:
        self._since: deque[float] = deque()  # the oldest first
        self.expected = 0
        """Of those, asked for lately: they may still be made [1]."""

    @property
    def overdue(self) -> int:
        """The others [1]."""
        return len(self._since) - self.expected

    def update(self, missing: int, now: float, *, is_in_turn: bool) -> None:
        """Take in how many are missing at `now` [s]; `is_in_turn`: each is made once another is ready."""
        if is_in_turn:
            self._since.clear()
        while len(self._since) > missing:
            self._since.pop()
        self._since.extend([now] * (missing - len(self._since)))
        self.expected = sum(now - since < MADE_WITHIN for since in self._since)


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
    # A pod with two addresses is in two slices, which change one after the other. One address is enough, and
    # always the same: that of its first kind, or of the kind that comes first here.
    in_order = sorted(slices, key=lambda each: (each["addressType"], each["metadata"]["name"]))
    kinds = {each["addressType"] for each in in_order}
    for each in in_order:
        number = _port_of(each, port)
        for endpoint in each.get("endpoints") or ():
            kind = _first_kind(pods.get(_uid(endpoint)))
            if kind in kinds and kind != each["addressType"]:
                continue
            member = _member(endpoint, number, is_https, pods, leaving)
            if member is not None:
                found.setdefault(member.id, member)
    return list(found.values())


def misses_of(slices: Iterable[Any], port: str | None) -> str | None:
    """Say what keeps all pods of a Service from being found, whatever they do; None if nothing does."""
    ports = [each.get("ports") or () for each in slices]
    if not ports:
        return "it has no EndpointSlice; set service to the one in front of the pods"
    there = sorted(
        {f"{each.get('name') or '(no name)'}: {each.get('port')}" for some in ports for each in some}
    )
    if not there or any(_port_of({"ports": some}, port) is not None for some in ports):
        return None
    return f"it has no port {port}; set port to one of these: {', '.join(there)}"


def count_pods(
    pods: Mapping[str, Any], ready: Collection[str], ages: Mapping[str, float], start_timeout: float
) -> PodCounts:
    """Count pods.

    Parameters
    ----------
    pods : mapping of str to Pod
        By uid.
    ready : collection of str
        Uids of those that are ready.
    ages : mapping of str to float
        For how long each has been as it is, by uid [s].
    start_timeout : float
        One that has a node and is not ready for so long is not counted on [s].
    """
    live = {uid: pod for uid, pod in pods.items() if is_live(pod)}
    waiting = {uid: pod for uid, pod in live.items() if uid not in ready}
    refused = {uid: why for uid, pod in waiting.items() if (why := _unschedulable(pod)) is not None}
    hopeless = [uid for uid in refused if ages[uid] >= UNSCHEDULABLE_AFTER]
    stuck = [uid for uid in waiting.keys() - refused.keys() if ages[uid] >= start_timeout]
    return PodCounts(
        live=len(live),
        starting=len(waiting) - len(hopeless) - len(stuck),
        unschedulable=len(hopeless),
        stuck=len(stuck),
        why=_why_not_ready([refused[uid] for uid in hopeless], waiting, stuck),
    )


def is_live(pod: Any) -> bool:
    """Whether a pod is neither over nor terminating."""
    return "deletionTimestamp" not in pod["metadata"] and pod["status"].get("phase") not in _OVER


def _why_not_ready(refused: list[str], waiting: Mapping[str, Any], stuck: Collection[str]) -> str | None:
    """Return what one of those pods says that are not going to get ready by themselves."""
    if refused:
        return f"{len(refused)} pods cannot be scheduled: {refused[0]}"
    failing = {uid: why for uid, pod in waiting.items() if (why := _failing(pod)) is not None}
    if failing:
        return f"{len(failing)} pods do not start: {next(iter(failing.values()))}"
    if stuck:
        name = waiting[min(stuck)]["metadata"]["name"]
        return f"{len(stuck)} pods do not get ready; see why: kubectl describe pod {name}"
    return None


def _failing(pod: Any) -> str | None:
    """Return what a container waits for that is no part of a start: its image, its configuration, a pause."""
    status = pod["status"]
    for each in (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())):
        waiting = (each.get("state") or {}).get("waiting") or {}
        if (reason := waiting.get("reason")) and reason not in _ON_ITS_WAY:
            return f"{reason}: {waiting['message']}"[:500] if waiting.get("message") else str(reason)
    return None


def _uid(endpoint: Any) -> str:
    return str((endpoint.get("targetRef") or {}).get("uid") or endpoint["addresses"][0])


def _first_kind(pod: Any) -> str | None:
    """Return the kind of a pod's first address; None if that is not known."""
    address = None if pod is None else pod["status"].get("podIP")
    return None if not address else "IPv6" if ":" in address else "IPv4"


def _member(
    endpoint: Any, port: int | None, is_https: bool, pods: Mapping[str, Any], leaving: Collection[str]
) -> Member | None:
    conditions = endpoint.get("conditions") or {}
    uid = _uid(endpoint)
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


def _unschedulable(pod: Any) -> str | None:
    """Return what the scheduler says of a pod for which it found no node; None if that is not so."""
    for condition in pod["status"].get("conditions") or ():
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            is_meant = condition.get("reason") == "Unschedulable"
            return str(condition.get("message") or condition["reason"]) if is_meant else None
    return None
