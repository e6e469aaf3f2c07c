"""Which class of its pool's queue a request belongs to.

What is said of it counts in this order; the first that says anything decides:

    Prefer: respond-async    (RFC 7240) the least urgent class: work that can wait
    Priority: u=0…7          (RFC 9218) 0, 1 one class more urgent; 2–4 the default; 5, 6 one less; 7 two less
    "service_tier"           (OpenAI bodies) priority: one class more urgent; flex: one less
    nothing                  the default class of the route

A pool with fewer classes takes the nearest that it has.
"""

import re
from collections.abc import Mapping, Sequence

from autoscaler.dispatch.priority_class import PriorityClass
from autoscaler.domain import STANDARD

_URGENCY = re.compile(r"(?:^|,)\s*u=([0-7])\s*(?:$|[,;])")
_STEPS = (-1, -1, 0, 0, 0, 1, 1, 2)
"""By urgency, how many classes after the default one."""

_RESPOND_ASYNC = re.compile(r"(?:^|,)\s*respond-async\s*(?:$|[,;])", re.IGNORECASE)

_TIER_NAME = b'"service_tier"'
_TIER = re.compile(rb'"service_tier"\s*:\s*"(priority|flex)"')
_TIER_STEPS = {b"priority": -1, b"flex": 1}
_LOOKED_AT = 64 * 1024
"""So much of a body is looked through at each of its ends [bytes]: long prompts stand in between."""


def class_of(
    headers: Mapping[str, str], path: str, body: bytes, classes: Sequence[PriorityClass], own: str
) -> PriorityClass:
    """Return the class of a request.

    Parameters
    ----------
    headers, path, body : mapping, str, bytes
        Of the request; of the body what is here already.
    classes : sequence of PriorityClass
        Of the queue, the most urgent first; not empty.
    own : str
        The default class of the route; the standard one, or the first, where there is none of that name.
    """
    prefer, priority = headers.get("Prefer"), headers.get("Priority")
    if prefer is not None and _RESPOND_ASYNC.search(prefer):
        return classes[-1]
    step = 0
    if priority is not None and (urgency := _URGENCY.search(priority)):
        step = _STEPS[int(urgency[1])]
    elif path.startswith("/v1/") and (tier := _tier(body)):
        step = _TIER_STEPS[tier]
    return classes[min(max(_place_of(own, classes) + step, 0), len(classes) - 1)]


def _place_of(own: str, classes: Sequence[PriorityClass]) -> int:
    place = 0
    for index, each in enumerate(classes):
        if each.name == own:
            return index
        if each.name == STANDARD:
            place = index
    return place


def _tier(body: bytes) -> bytes | None:
    for part in (body[:_LOOKED_AT], body[_LOOKED_AT:][-_LOOKED_AT:]):
        if _TIER_NAME in part and (found := _TIER.search(part)):
            return found[1]
    return None
