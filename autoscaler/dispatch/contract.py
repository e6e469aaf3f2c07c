"""The contract of events, checked before anything has changed, so that no action is lost with the error."""

from autoscaler.dispatch.central_queue import CentralQueue
from autoscaler.dispatch.events import Event, ReplicaReady, Returned, TakenOver
from autoscaler.dispatch.slots import Slots
from autoscaler.domain import Request


def check(event: Event, queue: CentralQueue, slots: Slots) -> None:
    """Raise ValueError, naming what is wrong, if one of the rarer events cannot be."""
    match event:
        case TakenOver(request):
            check_arrival(request, queue, slots)
        case Returned(lease, request) if lease.request_id != request.id:
            raise ValueError(f"lease of {lease.request_id!r} cannot return request {request.id!r}")
        case ReplicaReady(replica_id, count) if count < 0:
            raise ValueError(f"need slots >= 0, got {count} for replica {replica_id!r}")
        case ReplicaReady(replica_id, count, _, first) if first is not None and not 1 <= first <= count:
            raise ValueError(
                f"need 1 <= learns_from <= slots, got {first} of {count} for replica {replica_id!r}"
            )
        case ReplicaReady(replica_id, _, calls) if calls is not None and calls < 1:
            raise ValueError(
                f"need calls_max >= 1, got {calls} for replica {replica_id!r}; None merges nothing"
            )


def check_arrival(request: Request, queue: CentralQueue, slots: Slots) -> None:
    """Raise ValueError, naming what is wrong, if `request` cannot arrive."""
    if request.id in queue.places or request.id in slots.live:
        raise ValueError(f"request id {request.id!r} is alive already; give each request its own")
    if request.deadline != request.deadline:  # NaN
        raise ValueError(f"need a deadline, got NaN for request {request.id!r}; infinity means none")
    if request.body_bytes < 0 or not request.service_time >= 0:
        raise ValueError(
            f"need body_bytes and service_time >= 0, got {request.body_bytes} and {request.service_time} "
            f"for request {request.id!r}"
        )
    if request.merge is not None and not 1 <= request.merge.rows <= request.merge.rows_max:
        raise ValueError(
            f"need 1 <= rows <= rows_max, got {request.merge.rows} and {request.merge.rows_max} "
            f"for request {request.id!r}"
        )
    if request.priority_class not in queue.lines:
        raise ValueError(
            f"no class {request.priority_class!r} for request {request.id!r}; "
            f"there are {', '.join(queue.lines)}"
        )
