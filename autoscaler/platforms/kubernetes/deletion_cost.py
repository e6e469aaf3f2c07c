"""Which pods the cluster shall take away first: those that are cheap to delete, which an annotation says.

Whether a pod is marked is read off the pod, so neither a step that failed nor an earlier run of this program
leaves a mark for long.

Source: the documentation of ReplicaSet, "Pod deletion cost".
"""

from collections.abc import Collection, Sequence

import structlog

from autoscaler.platforms.kubernetes.api import NOT_FOUND, ApiRefused, Json
from autoscaler.platforms.kubernetes.target import Target

_ANNOTATION = "controller.kubernetes.io/pod-deletion-cost"
"""The cheapest is deleted first; 0 where there is none."""
_CHEAP = "-1000"

log = structlog.get_logger(__name__)


async def mark(target: Target, pods: Sequence[Json], going: Collection[str], let_go: Collection[str]) -> None:
    """Make pods cheap to delete that may go now, and those dear again that may not any more.

    Parameters
    ----------
    target : Target
        What is scaled.
    pods : sequence of Pod
        All that are wanted so far.
    going : collection of str
        Uids of those that may go now.
    let_go : collection of str
        Uids of those that were to go with an earlier step; the cluster may not have chosen yet.
    """
    if not are_priced(pods):
        return
    for pod in pods:
        uid, is_cheap = pod["metadata"]["uid"], _is_cheap(pod)
        if is_cheap == (uid in going) or (is_cheap and uid in let_go):
            continue
        try:
            await target.annotate(pod, _ANNOTATION, None if is_cheap else _CHEAP)
        except ApiRefused as error:
            if error.status != NOT_FOUND:  # else it has gone by itself
                log.warning("pods to go cannot be marked; others may go instead", why=str(error))
                return


def are_priced(pods: Collection[Json]) -> bool:
    """Whether what makes the pods looks at the cost of their deletion: a ReplicaSet does."""
    owners = {
        owner["kind"]
        for pod in pods
        for owner in pod["metadata"].get("ownerReferences") or ()
        if owner.get("controller")
    }
    return owners <= {"ReplicaSet"}


def _is_cheap(pod: Json) -> bool:
    return (pod["metadata"].get("annotations") or {}).get(_ANNOTATION) == _CHEAP
