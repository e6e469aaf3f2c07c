"""Where a request goes that may not, or would rather not, go to the least loaded replica.

It goes to none that it has tried while another one is offered; when it has tried them all, to any. Among
those that are left affinity chooses, and where that has no choice, load.
"""

from collections.abc import Sequence

from autoscaler.dispatch.affinity import AffinityOptions, preferred
from autoscaler.dispatch.slots import ReplicaLoad, ReplicaState
from autoscaler.domain import Request


def place_of(
    request: Request, replicas: Sequence[ReplicaLoad], affinity: AffinityOptions | None
) -> str | None:
    """Return the id of the replica that `request` shall go to, or None if it must wait; O(replicas)."""
    offered = [load for load in replicas if load.state is ReplicaState.READY and load.slots]
    allowed = [load for load in offered if load.replica_id not in request.tried] or offered
    if affinity is not None and request.affinity_key:
        best = preferred(request.affinity_key, allowed, affinity.load_bound)
        if best is not None:
            return best
    free = [load for load in allowed if load.free]
    least = min(free, key=lambda load: (load.busy / load.slots, load.busy), default=None)
    return None if least is None else least.replica_id
