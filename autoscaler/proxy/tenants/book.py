"""The tenants that there are: their keys, what they may use, and where.

Keys are found by their digests: the first digits lead to few candidates, each of which is compared as a
whole in a time that does not depend on where they differ. What the look-up tells by its time is of the
digest, which an attacker can neither choose nor turn back into a key.
"""

import hmac
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from autoscaler.dispatch.tenant_limits import TenantLimits
from autoscaler.proxy.tenants.key import DIGEST_PREFIX, digest_of

_LED_BY = len(DIGEST_PREFIX) + 8


@dataclass(frozen=True, slots=True)
class Tenant:
    """One tenant."""

    name: str
    limits: TenantLimits = field(default_factory=TenantLimits)
    pools: frozenset[str] | None = None
    """Names of the pools that it may use; None: all."""


class TenantBook:
    """Every tenant that is known, and what the others get.

    Parameters
    ----------
    tenants : mapping of str to Tenant
        By name.
    owners : mapping of str to str
        Name of the tenant by the digest of its key.
    others : TenantLimits
        What tenants may use that are not in the book.
    """

    def __init__(
        self,
        tenants: Mapping[str, Tenant] | None = None,
        owners: Mapping[str, str] | None = None,
        others: TenantLimits | None = None,
    ) -> None:
        self.tenants = dict(tenants or {})
        self._others = others or TenantLimits()
        self._owners: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for digest, name in (owners or {}).items():
            self._owners[digest[:_LED_BY]].append((digest, name))

    def by_key(self, key: str) -> Tenant | None:
        """Return whose key it is; None if it is nobody's."""
        digest = digest_of(key)
        found = None
        for known, name in self._owners.get(digest[:_LED_BY], ()):
            if hmac.compare_digest(known, digest):
                found = self.tenants[name]
        return found

    def by_name(self, name: str) -> Tenant:
        """Return the tenant of this name, which need not be in the book."""
        return self.tenants.get(name) or Tenant(name, self._others)

    def __repr__(self) -> str:
        return f"<TenantBook tenants={len(self.tenants)}>"
