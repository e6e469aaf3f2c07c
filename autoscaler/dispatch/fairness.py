"""Whose turn it is among the tenants of one class: deficit round robin.

Every tenant with somebody waiting is *active*, and stands in a ring. A tenant's turn lasts while its credit
covers the cost of its first request; then it gets its weight in fresh credit and goes to the end of the ring.
Costs are in mean services, so a tenant of weight 1 gets about one request a round, and one with requests
twice as long gets half as many. Whoever has nothing more waiting leaves the ring, and its credit is
forgotten, so the ring is as long as tenants are active, however many there are.

Between two tenants that both wait all the time, what each got divided by its weight never differs by more
than the credit of one round and the cost of one request of each (Shreedhar and Varghese, 1996). When no
credit in a whole round suffices, the rounds until it does are granted at once, so cost and weight may be any.
"""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil
from typing import Any

from autoscaler.dispatch.place import Place

_DEBT_MAX = 256.0
"""A tenant is in debt for no more rounds than this [1]: its requests may fill up batches in which nobody else
had any, which is no reason to let it stand back for long when others come."""


@dataclass(slots=True, eq=False)
class _Tenant:
    name: str
    weight: float
    credit: float
    line: OrderedDict[str, Place] = field(default_factory=OrderedDict)

    @property
    def rounds_missing(self) -> int:
        """Rounds until its credit covers its first request [1]."""
        return ceil((next(iter(self.line.values())).cost - self.credit) / self.weight)


class TenantTurns:
    """First come, first served within a tenant; by deficit round robin among them.

    Parameters
    ----------
    weights : mapping
        Weight > 0 by tenant; 1 for one that is not in it.
    """

    def __init__(self, weights: Mapping[str, float]) -> None:
        self._weights = weights
        self._ring: OrderedDict[str, _Tenant] = OrderedDict()

    @property
    def active(self) -> int:
        """Tenants with somebody waiting [1]."""
        return len(self._ring)

    def waiting_of(self, tenant: str) -> int:
        """How many of this tenant wait [requests]."""
        known = self._ring.get(tenant)
        return 0 if known is None else len(known.line)

    def before(self, place: Place) -> int:
        """How many will be served before `place`, turns of equal weight assumed [requests]; O(waiting)."""
        own = list(self._ring[place.request.tenant].line).index(place.request.id)
        others = (t.line for name, t in self._ring.items() if name != place.request.tenant)
        return own + sum(min(len(line), own) for line in others)

    def push(self, place: Place) -> None:
        """Put `place` at the end of its tenant's line; O(1)."""
        name = place.request.tenant
        tenant = self._ring.get(name)
        if tenant is None:
            weight = self._weights.get(name, 1.0)
            tenant = self._ring[name] = _Tenant(name, weight, credit=weight)
        tenant.line[place.request.id] = place

    def pop(self) -> Place:
        """Take out the one whose turn it is; somebody must wait. O(1) while costs and weights are near 1."""
        ring = self._ring
        tenant = next(iter(ring.values())) if len(ring) == 1 else self._whose_turn(ring)
        _, place = tenant.line.popitem(last=False)
        self._charge(tenant, place)
        return place

    def first_among(self, lines: "OrderedDict[str, OrderedDict[str, Place]]") -> Place:
        """Return the one whose turn it is among some who wait, by tenant; the others keep their turns."""
        name = next(iter(lines)) if len(lines) == 1 else self._whose_turn(lines).name
        return next(iter(lines[name].values()))

    def remove(self, place: Place, *, served: bool) -> None:
        """Take `place` out of its turn; where it is `served`, its tenant pays for it all the same. O(1)."""
        tenant = self._ring[place.request.tenant]
        del tenant.line[place.request.id]
        if served:
            self._charge(tenant, place)
        elif not tenant.line:
            del self._ring[tenant.name]

    def _whose_turn(self, names: "OrderedDict[str, Any]") -> _Tenant:
        """Return whose turn it is among the tenants of these names, which are brought into the next order."""
        ring = self._ring
        while True:
            for _ in range(len(names)):
                tenant = ring[next(iter(names))]
                if next(iter(tenant.line.values())).cost <= tenant.credit:
                    return tenant
                tenant.credit += tenant.weight
                names.move_to_end(tenant.name)
            rounds = max(0, min(ring[name].rounds_missing for name in names) - 1)
            for name in names:
                ring[name].credit += rounds * ring[name].weight

    def _charge(self, tenant: _Tenant, place: Place) -> None:
        if not tenant.line:
            del self._ring[tenant.name]
        elif len(self._ring) > 1:  # alone, it takes from nobody
            tenant.credit = max(tenant.credit - place.cost, -_DEBT_MAX * tenant.weight)
