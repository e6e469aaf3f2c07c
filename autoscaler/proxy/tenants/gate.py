"""Whose request it is, and whether it may be made now; asked of every request before anything else is done.

    trusted header ─▶ tenant ─┐
    key ─▶ digest ─▶ tenant ──┼▶ may it use the pool? ─▶ within its limits? ─▶ in, until the request ends
    neither ─▶ anonymous ─────┘        403                     429
        401

A request counts against its tenant from the gate to its last byte, however it ends: `entered` is a context.
Answers of 429 say when the limit will have room. The tenants may be replaced at any time; who is in is not
concerned.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Self

from autoscaler.dispatch.tenant_limits import Admitted, Limit, OverLimit, TenantLimiter
from autoscaler.ports import Clock
from autoscaler.proxy.answers import Refusal, Refused
from autoscaler.proxy.tenants import counts
from autoscaler.proxy.tenants.book import Tenant, TenantBook
from autoscaler.proxy.tenants.counts import TenantCounts
from autoscaler.proxy.tenants.options import TenantOptions
from autoscaler.proxy.tenants.tokens import TokenCount, estimate

Field = Callable[[str], str | None]
"""Returns the value of a header, or None."""

ANONYMOUS = "anonymous"

_API_KEY, _AUTHORIZATION = "X-API-Key", "Authorization"
_SOON = 1.0
"""What to say to a tenant whose requests at a time are used up [s]: nobody knows when one ends."""

_NAME_MAX = 128

_OVER = {
    Limit.REQUESTS: "Your requests of this minute are used up",
    Limit.TOKENS: "Your tokens of this minute are used up",
    Limit.IN_FLIGHT: "As many of your requests as may be are in progress",
}


@dataclass(slots=True)
class Entry:
    """A request that was let in, for as long as it lasts: a context."""

    tenant: str = ""
    own_names: frozenset[str] = frozenset()
    """Headers that were meant for us, in lower case: they are not passed on."""
    answer: TokenCount | None = None
    """Is to be shown the answer, if its tokens count."""
    leave: Callable[[], None] | None = None
    """Ends it; the second time nothing happens."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.leave is not None:
            self.leave()


@dataclass(frozen=True, slots=True)
class _Caller:
    tenant: Tenant
    own_names: frozenset[str]


def open_gate(clock: Clock) -> "TenantGate":
    """Return a gate that lets everybody in."""
    return TenantGate(TenantOptions(), TenantBook(), clock)


class TenantGate:
    """Lets requests in.

    Parameters
    ----------
    options : TenantOptions
        How tenants are told apart.
    book : TenantBook
        Who there is; `replace` puts another in its place.
    clock : Clock
        Monotonic seconds for the limits.
    """

    def __init__(self, options: TenantOptions, book: TenantBook, clock: Clock) -> None:
        self._options = options
        self._clock = clock
        self._limiter = TenantLimiter()
        self.counts = TenantCounts(options.names_max)
        self.replace(book)

    def replace(self, book: TenantBook) -> None:
        """Take other tenants, keys and limits from now on."""
        self._book = book
        self.counts.know(book.tenants)

    def entered(self, field: Field, pool: str, text_bytes: int | None) -> Entry:
        """Let a request in for as long as the context lasts that is returned.

        Parameters
        ----------
        field : callable
            Looks up its headers.
        pool : str
            Where it goes.
        text_bytes : int or None
            Length of its text [bytes], from which its tokens are estimated; None if it is no text.

        Raises
        ------
        Refused
            With 401, 403 or 429.
        """
        if not self._options.any:
            return Entry()
        caller = self._caller(field, pool)
        tenant, tokens = caller.tenant, estimate(text_bytes or 0)
        admitted = self._limiter.enter(tenant.name, tenant.limits, tokens, self._clock.now())
        if isinstance(admitted, OverLimit):
            self.counts.add(tenant.name, admitted.limit.value)
            raise Refused(_over(admitted))
        self.counts.add(tenant.name, counts.LET_IN)
        counts_tokens = tenant.limits.token_rate is not None and text_bytes is not None
        answer = TokenCount(tokens, self._clock.now) if counts_tokens else None
        return Entry(tenant.name, caller.own_names, answer, partial(self._leave, admitted, answer))

    def check(self, field: Field, pool: str) -> frozenset[str]:
        """Check a request that takes nothing; return what `Entry.own_names` would be. Raises `Refused`."""
        return self._caller(field, pool).own_names if self._options.any else frozenset()

    def allowed(self, field: Field, pools: Iterable[str]) -> frozenset[str]:
        """Return those of `pools` that whoever asks may use; raises `Refused` if it must not be nobody's."""
        if not self._options.any:
            return frozenset(pools)
        own = self._identified(field).tenant.pools
        return frozenset(pools) if own is None else own & frozenset(pools)

    def in_flight(self, tenant: str) -> int:
        """Return how many requests of `tenant` are in [requests]."""
        return self._limiter.in_flight(tenant)

    def _leave(self, admitted: Admitted, answer: TokenCount | None) -> None:
        self._limiter.leave(admitted, self._clock.now(), None if answer is None else answer.tokens)

    # -- whose it is

    def _identified(self, field: Field) -> _Caller:
        caller = self._by_header(field) or self._by_key(field)
        if caller is None:
            if self._options.required:
                self.counts.add(counts.OTHER, counts.NO_KEY)
                raise Refused(self._no_key())
            caller = _Caller(self._book.by_name(ANONYMOUS), frozenset())
        return caller

    def _caller(self, field: Field, pool: str) -> _Caller:
        caller = self._identified(field)
        tenant = caller.tenant
        if tenant.pools is not None and pool not in tenant.pools:
            self.counts.add(tenant.name, counts.FORBIDDEN)
            text = f"The pool {pool} is not for you; ask for it, or use another model or path."
            raise Refused(Refusal(403, "forbidden", text))
        return caller

    def _by_header(self, field: Field) -> _Caller | None:
        name = field(self._options.header) if self._options.header is not None else None
        return _Caller(self._book.by_name(name[:_NAME_MAX]), frozenset()) if name else None

    def _by_key(self, field: Field) -> _Caller | None:
        """Find the tenant of a key. Raises `Refused` if it is nobody's."""
        if self._options.keys_file is None:
            return None
        name, key = _key_in(field)
        if key is None:
            return None
        tenant = self._book.by_key(key)
        if tenant is None:
            self.counts.add(counts.OTHER, counts.NO_KEY)
            text = "This API key is nobody's, or is no longer valid; send another one."
            raise Refused(Refusal(401, "invalid_api_key", text))
        return _Caller(tenant, frozenset() if self._options.forward_keys else frozenset((name.lower(),)))

    def _no_key(self) -> Refusal:
        if self._options.keys_file is None:
            text = f"The request does not say whose it is: {self._options.header} is missing."
        else:
            text = "An API key is needed; send it as `Authorization: Bearer KEY` or `X-API-Key: KEY`."
        return Refusal(401, "no_api_key", text)


def _key_in(field: Field) -> tuple[str, str | None]:
    """Return the header that carries a key, and the key; None if there is none."""
    if (key := field(_API_KEY)) is not None:
        return _API_KEY, key.strip()
    scheme, _, key = (field(_AUTHORIZATION) or "").partition(" ")
    return _AUTHORIZATION, key.strip() if scheme.lower() == "bearer" else None


def _over(over: OverLimit) -> Refusal:
    retry_after = _SOON if over.retry_after is None else over.retry_after
    text = f"{_OVER[over.limit]}; send this one again in {max(1, round(retry_after))} s or later."
    return Refusal(429, "rate_limit_exceeded", text, retry_after=retry_after)
