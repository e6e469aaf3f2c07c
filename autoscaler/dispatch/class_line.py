"""All who wait in one class, what they amount to, and what the class holds.

Who was returned by a replica stands before all others of the class, in a line of its own: it had its turn
already, and it may be unable to go where the others can. Of the others, while all are of one tenant, age is
the turn; the tenants' ring (`fairness.py`) is used from the second tenant on until nobody is left.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from math import ceil, floor, inf

from autoscaler.dispatch.buckets import Buckets
from autoscaler.dispatch.fairness import TenantTurns
from autoscaler.dispatch.place import Place
from autoscaler.dispatch.priority_class import PriorityClass
from autoscaler.domain import Request

MayStart = Callable[[Request], bool]
"""Whether a slot is free where this request may go; asked only of those who were returned."""


class ClassLine:
    """One class of the queue.

    Attributes
    ----------
    waiting, waiting_bytes : int
        Who waits, and the memory that their bodies hold [bytes].
    running : int
        Slots that the class holds [1]; whoever sends and frees keeps it.
    slots_floor, slots_max : float
        It goes first while it holds fewer than the first, and never holds more than the second [slots].
    shared : bool
        Whether tenants take turns.
    """

    def __init__(self, options: PriorityClass, weights: Mapping[str, float]) -> None:
        self.options = options
        self.waiting = 0
        self.waiting_bytes = 0
        self.running = 0
        self.slots_floor = 0.0
        self.slots_max = inf
        self.shared = False
        self._work = 0.0
        self._unpredicted = 0
        self._tenant = ""
        self._by_age: OrderedDict[str, Place] = OrderedDict()
        self._returned: OrderedDict[str, Place] = OrderedDict()
        self._turns = TenantTurns(weights)
        self._buckets = Buckets()

    def follow(self, slots_ready: int) -> None:
        """Fit floor and ceiling to the slots that there are."""
        options = self.options
        self.slots_floor = ceil(options.slots_floor * slots_ready)
        self.slots_max = inf if options.slots_share == 1 else max(1, floor(options.slots_share * slots_ready))

    def push(self, place: Place) -> None:
        """Put `place` at the end of its tenant's line."""
        if not self.shared and place.request.tenant != self._tenant:
            if self._by_age:
                self.shared = True
                for earlier in self._by_age.values():
                    self._turns.push(earlier)
            self._tenant = place.request.tenant
        self._by_age[place.request.id] = place
        if self.shared:
            self._turns.push(place)
        self._buckets.push(place)
        self._count(place, 1)

    def push_returned(self, place: Place) -> None:
        """Put `place` before all others of the class."""
        self._returned[place.request.id] = place
        self._returned.move_to_end(place.request.id, last=False)
        self._count(place, 1)

    def pop(self, may_start: MayStart) -> Place | None:
        """Take out the one whose turn it is in this class; None if nobody can start."""
        if self._returned:
            for place in self._returned.values():
                if may_start(place.request):
                    self.remove(place)
                    return place
            if not self._by_age:
                return None
        if self.shared:
            place = self._turns.pop()
            del self._by_age[place.request.id]
            self.shared = bool(self._by_age)
        else:
            place = self._by_age.popitem(last=False)[1]
        self._buckets.remove(place)
        self._count(place, -1)
        return place

    def rows_waiting(self, bucket: Hashable) -> int:
        """How many rows wait of a bucket [1]."""
        return self._buckets.rows(bucket)

    def mate(self, bucket: Hashable) -> Place | None:
        """Who is next of those who may share a call of this bucket; never one who was returned."""
        tenants = self._buckets.waiting(bucket)
        if tenants is None or self.running >= self.slots_max:
            return None
        if self.shared:
            return self._turns.first_among(tenants)
        return next(iter(next(iter(tenants.values())).values()))

    def remove(self, place: Place, *, served: bool = False) -> None:
        """Take out `place`, out of its turn: because it is `served` now, or because it is over."""
        if self._returned.pop(place.request.id, None) is None:
            del self._by_age[place.request.id]
            self._buckets.remove(place)
            if self.shared:
                self._turns.remove(place, served=served)
                self.shared = bool(self._by_age)
        self._count(place, -1)

    def oldest(self, may_start: MayStart | None = None) -> Place | None:
        """Who has waited longest (of those who can start); None if there is nobody."""
        oldest = next(iter(self._by_age.values()), None)
        for place in self._returned.values():
            if (oldest is None or place.since < oldest.since) and (
                may_start is None or may_start(place.request)
            ):
                oldest = place
        return oldest

    def work(self, service_time_mean: float) -> float:
        """Predicted service time of all who wait [s]; of whom nothing was predicted, the mean."""
        return self._work + self._unpredicted * service_time_mean

    def before_new(self, tenant: str) -> int:
        """How many of the class would be served before a new one of `tenant` [requests], in O(1).

        Turns of equal weight are assumed, one of each active tenant a round. Exact while all others have as
        many waiting as the tenant has; where some have fewer, it errs on the high side.
        """
        waiting = len(self._by_age)
        if self.shared:
            own = self._turns.waiting_of(tenant)
            others = self._turns.active - (own > 0)
            waiting = min(waiting, own + (own + 1) * others)
        elif tenant != self._tenant:
            waiting = min(waiting, 1)
        return len(self._returned) + waiting

    def before(self, place: Place) -> int:
        """How many of the class will be served before `place`, which waits [requests]; O(waiting)."""
        if place.request.id in self._returned:
            return list(self._returned).index(place.request.id)
        ahead = self._turns.before(place) if self.shared else list(self._by_age).index(place.request.id)
        return len(self._returned) + ahead

    def _count(self, place: Place, sign: int) -> None:
        self.waiting += sign
        self.waiting_bytes += sign * place.request.body_bytes
        if not place.work:
            self._unpredicted += sign
        else:
            self._work = self._work + sign * place.work if self.waiting else 0.0
