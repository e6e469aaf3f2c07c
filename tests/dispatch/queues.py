"""Small queues, and what comes out of them."""

from math import inf

from autoscaler.dispatch.actions import Action, Drop, Send
from autoscaler.dispatch.central_queue import CentralQueue
from autoscaler.domain import STANDARD, Request


def a_request(
    name: str, *, of: str = STANDARD, tenant: str = "", arrived_at: float = 0.0, deadline: float = inf
) -> Request:
    return Request(name, arrived_at, deadline, priority_class=of, tenant=tenant)


def anybody(request: Request) -> bool:
    """Every slot suits."""
    return True


def pop(queue: CentralQueue, now: float = 0.0) -> str | None:
    """Id of the one whose turn it is."""
    place = queue.pop(now, anybody)
    return None if place is None else place.request.id


def pop_all(queue: CentralQueue, now: float = 0.0) -> list[str]:
    """Ids in the order of service."""
    return [name for name in iter(lambda: pop(queue, now), None) if name is not None]


def sent(actions: list[Action]) -> list[str]:
    """Ids of the requests sent; there must be no other action."""
    assert all(isinstance(action, Send) for action in actions), actions
    return [action.request.id for action in actions if isinstance(action, Send)]


def the_drop(actions: list[Action]) -> Drop:
    """The only action, which drops."""
    [action] = actions
    assert isinstance(action, Drop), action
    return action
