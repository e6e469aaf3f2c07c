"""Which pool a call is for.

Over HTTP the path says it; every call of this service has the same path, so the model does:

    1. a call that names a pool in its metadata (`x-pool`) goes there;
    2. the only pool there is takes every call;
    3. a model that a pool is configured for (`server.model`) goes to that pool;
    4. any other goes to the first pool that is configured for none.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from autoscaler.proxy.answers import Refusal, Refused
from autoscaler.proxy.batch.batching import Batching
from autoscaler.proxy.drive import PoolDrive
from autoscaler.proxy.options import RouteOptions
from autoscaler.tls import ClientTls

POOL_KEY = "x-pool"


@dataclass(frozen=True, slots=True)
class GrpcRoute:
    """The way to one pool."""

    drive: PoolDrive
    options: RouteOptions
    model: str | None = None
    """The model that the pool is configured for; None: whatever its servers have."""
    tls: ClientTls | None = None
    """How its replicas are spoken to; None for plain text."""
    batching: Batching | None = None
    """Merges its requests, with those that come over HTTP; None: none is merged."""


class Routes:
    """The pools that speak gRPC, in the order of the configuration."""

    def __init__(self, routes: Sequence[GrpcRoute]) -> None:
        if not routes:
            raise ValueError("need a pool that speaks gRPC, got none")
        self.all = tuple(routes)
        self._by_name = {route.drive.name: route for route in self.all}
        self._by_model: dict[str, GrpcRoute] = {}
        for route in self.all:
            if route.model is not None:
                self._by_model.setdefault(route.model, route)
        open_to_all = [route for route in self.all if route.model is None]
        self._rest = self.all[0] if len(self.all) == 1 else next(iter(open_to_all), None)

    def of_pool(self, name: str) -> GrpcRoute:
        """Return the way to a pool that speaks gRPC. Raises KeyError if it does not."""
        return self._by_name[name]

    def find(self, model: str | None, pool: str | None) -> GrpcRoute:
        """Return the way for a call about `model` (None: about none) that may name its `pool`.

        Raises
        ------
        Refused
            With 404, if no pool is meant.
        """
        if pool is not None:
            route = self._by_name.get(pool)
            if route is None:
                raise Refused(_unknown("pool", pool, sorted(self._by_name)))
            return route
        if model is None:
            return self._rest or self.all[0]
        route = self._by_model.get(model) or self._rest
        if route is None:
            raise Refused(_unknown("model", model, sorted(self._by_model)))
        return route


def _unknown(what: str, given: str, known: list[str]) -> Refusal:
    text = f"No {what} {given[:100]!r} is served here; there is {', '.join(known)}."
    return Refusal(404, f"no_{what}", text)
