"""Who waits in one class and may share a call, by bucket and tenant, in the order of age."""

from collections import OrderedDict
from collections.abc import Hashable

from autoscaler.dispatch.place import Place

ByTenant = OrderedDict[str, OrderedDict[str, Place]]
"""Places by tenant and by id of the request, each tenant's in the order of age."""


class Buckets:
    """Knows of each bucket who waits. Requests that are never merged may be told of, and are not kept."""

    def __init__(self) -> None:
        self._buckets: dict[Hashable, ByTenant] = {}
        self._rows: dict[Hashable, int] = {}

    def push(self, place: Place) -> None:
        """`place` waits, the youngest; O(1)."""
        merge = place.request.merge
        if merge is not None:
            tenants = self._buckets.setdefault(merge.bucket, OrderedDict())
            tenants.setdefault(place.request.tenant, OrderedDict())[place.request.id] = place
            self._rows[merge.bucket] = self._rows.get(merge.bucket, 0) + merge.rows

    def remove(self, place: Place) -> None:
        """`place` waits no longer; O(1)."""
        merge, request = place.request.merge, place.request
        if merge is None:
            return
        tenants = self._buckets[merge.bucket]
        del tenants[request.tenant][request.id]
        self._rows[merge.bucket] -= merge.rows
        if not tenants[request.tenant]:
            del tenants[request.tenant]
        if not tenants:
            del self._buckets[merge.bucket], self._rows[merge.bucket]

    def rows(self, bucket: Hashable) -> int:
        """Return how many rows wait of a bucket [1]."""
        return self._rows.get(bucket, 0)

    def waiting(self, bucket: Hashable) -> ByTenant | None:
        """Return who waits of a bucket; None if nobody does."""
        return self._buckets.get(bucket)
