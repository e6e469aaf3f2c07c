"""What one tenant may use: requests and tokens in a time, and requests at a time.

A rate is held by a bucket: it holds what one minute brings, is full at first, fills at the rate, and every
request takes from it. So over any time T a tenant gets no more than rate · T and one minute's worth. Of
tokens nobody knows the number before the answer is whole: an estimate is taken at the door and made good at
the end, which may leave the bucket in debt, and the tenant waits until that is paid off.

Requests at a time are those between `enter` and `leave`, whether they wait or run. `leave` is owed for each
`enter` that was granted, once; a second one changes nothing.
"""

from collections import OrderedDict
from dataclasses import dataclass, field
from enum import StrEnum

BURST = 60.0
"""A bucket holds what so much time brings [s]."""

TENANTS_MAX = 10_000
"""So many tenants are remembered [1]; of those with nothing in flight, who came longest ago is forgotten."""


@dataclass(frozen=True, slots=True)
class TenantLimits:
    """What one tenant may use; None is no limit."""

    request_rate: float | None = None
    """Requests [1/s], in the mean over a minute."""
    token_rate: float | None = None
    """Tokens [1/s], in the mean over a minute: of prompts and answers together."""
    in_flight_max: int | None = None
    """Requests at a time, waiting and running [requests]."""

    def __post_init__(self) -> None:
        for name in ("request_rate", "token_rate"):
            rate = getattr(self, name)
            if rate is not None and rate <= 0:
                raise ValueError(f"need {name} > 0, got {rate}")
        if self.in_flight_max is not None and self.in_flight_max < 1:
            raise ValueError(f"need in_flight_max >= 1, got {self.in_flight_max}")


class Limit(StrEnum):
    """Which limit refused a request."""

    REQUESTS = "requests"
    TOKENS = "tokens"
    IN_FLIGHT = "in_flight"


@dataclass(frozen=True, slots=True)
class OverLimit:
    """A request that its tenant may not make now."""

    limit: Limit
    retry_after: float | None
    """When it could be made if nothing else were [s]; None if that depends on requests that run."""


@dataclass(slots=True, eq=False)
class Admitted:
    """A request within its tenant's limits. Ends by `TenantLimiter.leave`."""

    tenant: str
    limits: TenantLimits
    tokens: float
    """What was taken for it [tokens]."""
    has_left: bool = False


@dataclass(slots=True)
class _Bucket:
    level: float | None = None
    """What may be taken at time `at`; None: full. Below 0: a debt."""
    at: float = 0.0

    def fill(self, rate: float, now: float) -> float:
        """Bring the level up to date, and return it."""
        full = max(1.0, rate * BURST)
        level = full if self.level is None else min(full, self.level + rate * max(0.0, now - self.at))
        self.level, self.at = level, now
        return level

    def wait_for(self, amount: float, rate: float, now: float) -> float:
        """Return when `amount` can be taken [s]; more than a full bucket is let through when it is full."""
        wanted = min(amount, max(1.0, rate * BURST))
        return max(0.0, (wanted - self.fill(rate, now)) / rate)

    def take(self, amount: float, rate: float, now: float) -> None:
        """Take `amount`, or give it back if it is negative; a bucket holds no more than when it is full."""
        self.level = min(max(1.0, rate * BURST), self.fill(rate, now) - amount)


@dataclass(slots=True)
class _Use:
    requests: _Bucket = field(default_factory=_Bucket)
    tokens: _Bucket = field(default_factory=_Bucket)
    in_flight: int = 0


class TenantLimiter:
    """Counts what tenants use, and refuses what is beyond their limits."""

    def __init__(self) -> None:
        self._uses: OrderedDict[str, _Use] = OrderedDict()

    def enter(self, tenant: str, limits: TenantLimits, tokens: float, now: float) -> Admitted | OverLimit:
        """Take one request of `tenant` that will need about `tokens`, at time `now` [s], or say why not.

        Of several limits that refuse, the one that holds longest is told. A refused request takes nothing.
        The limits may differ from those of the call before: what was used is remembered, not what was left.
        """
        if tokens < 0:
            raise ValueError(f"need tokens >= 0, got {tokens}")
        use = self._use_of(tenant)
        if refusal := _refusal(use, limits, tokens, now):
            return refusal
        if limits.request_rate is not None:
            use.requests.take(1.0, limits.request_rate, now)
        if limits.token_rate is not None:
            use.tokens.take(tokens, limits.token_rate, now)
        use.in_flight += 1
        return Admitted(tenant, limits, tokens)

    def leave(self, admitted: Admitted, now: float, tokens: float | None = None) -> None:
        """End a request that used `tokens`; None leaves the estimate. The second time nothing happens."""
        if admitted.has_left:
            return
        admitted.has_left = True
        use = self._uses[admitted.tenant]
        use.in_flight -= 1
        if tokens is not None and admitted.limits.token_rate is not None:
            use.tokens.take(tokens - admitted.tokens, admitted.limits.token_rate, now)

    def in_flight(self, tenant: str) -> int:
        """Return how many requests of `tenant` have entered and not left [requests]."""
        use = self._uses.get(tenant)
        return 0 if use is None else use.in_flight

    def __len__(self) -> int:
        return len(self._uses)

    def __repr__(self) -> str:
        in_flight = sum(use.in_flight for use in self._uses.values())
        return f"<TenantLimiter tenants={len(self)} in_flight={in_flight}>"

    def _use_of(self, tenant: str) -> _Use:
        use = self._uses.get(tenant)
        if use is None:
            if len(self._uses) >= TENANTS_MAX:
                self._forget_one()
            use = self._uses[tenant] = _Use()
        self._uses.move_to_end(tenant)
        return use

    def _forget_one(self) -> None:
        """Forget who came longest ago and has nothing in flight; nobody if all have."""
        idle = next((name for name, use in self._uses.items() if not use.in_flight), None)
        if idle is not None:
            del self._uses[idle]


def _refusal(use: _Use, limits: TenantLimits, tokens: float, now: float) -> OverLimit | None:
    if limits.in_flight_max is not None and use.in_flight >= limits.in_flight_max:
        return OverLimit(Limit.IN_FLIGHT, None)
    waits = []
    if limits.request_rate is not None:
        waits.append((use.requests.wait_for(1.0, limits.request_rate, now), Limit.REQUESTS))
    if limits.token_rate is not None:
        waits.append((use.tokens.wait_for(tokens, limits.token_rate, now), Limit.TOKENS))
    wait, limit = max(waits, default=(0.0, Limit.REQUESTS))
    return OverLimit(limit, wait) if wait > _ROUNDING else None


_ROUNDING = 1e-9
"""What is missing for less than this is there: levels are sums of many small numbers [s]."""
