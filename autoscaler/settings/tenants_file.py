"""The file of tenants: who there is, the digests of their keys, and what they may use.

It is a file of its own because it changes more often than the configuration, and is kept like a secret. It
is read by the same code, so what is wrong with it is told in the same way, all at once.
"""

from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError

from autoscaler.dispatch.tenant_limits import TenantLimits
from autoscaler.errors import SettingsError
from autoscaler.proxy.tenants.book import Tenant, TenantBook
from autoscaler.proxy.tenants.key import DIGEST_FORM, PREFIX, digest_of, is_digest
from autoscaler.settings.complaints import note_all
from autoscaler.settings.document import Document
from autoscaler.settings.section import Section
from autoscaler.settings.values import Count, Kind, OrNone, Rate, Text, not_allowed
from autoscaler.settings.yaml_source import read

_NAME_MAX = 128


class KeyDigest(Kind):
    """What is kept of a key."""

    def read(self, given: Any) -> str:
        if isinstance(given, str) and given.startswith(PREFIX):
            raise not_allowed(DIGEST_FORM, f"write {digest_of(given)} instead of the key itself", True)
        if not isinstance(given, str) or not is_digest(given):
            raise not_allowed(DIGEST_FORM, "make a key and its digest with: autoscaler key new", True)
        return given


class LimitsSection(Section):
    """What a tenant may use: `TenantLimits`."""

    requests: Annotated[float | None, OrNone(Rate())] = None
    tokens: Annotated[float | None, OrNone(Rate())] = None
    in_flight: Annotated[int | None, OrNone(Count(least=1))] = None

    def limits(self, otherwise: TenantLimits) -> TenantLimits:
        """Return the limits; what is not written is as `otherwise`."""
        return TenantLimits(
            self.requests if "requests" in self.model_fields_set else otherwise.request_rate,
            self.tokens if "tokens" in self.model_fields_set else otherwise.token_rate,
            self.in_flight if "in_flight" in self.model_fields_set else otherwise.in_flight_max,
        )


class TenantSection(LimitsSection):
    """One tenant: `Tenant`."""

    keys: tuple[Annotated[str, KeyDigest()], ...] = ()
    pools: tuple[Annotated[str, Text()], ...] | None = None


class TenantsFileSection(Section):
    """The whole file."""

    default: LimitsSection = LimitsSection()
    tenants: Annotated[dict[str, TenantSection], Field(examples=["{acme: {keys: [sha256:…]}}"])]


def load_tenants(path: Path, pools: frozenset[str]) -> TenantBook:
    """Read the file at `path`, in which only `pools` may be named.

    Raises
    ------
    SettingsError
        With every problem of the file, in the order of their places.
    """
    document = read(path, {})
    _note_contradictions(document, pools)
    try:
        file = TenantsFileSection.model_validate(document.data)
    except ValidationError as error:
        note_all(error, TenantsFileSection, document)
    if document.problems:
        raise SettingsError(sorted(document.problems, key=lambda problem: (problem.line, problem.column)))
    return _book(file)


def _book(file: TenantsFileSection) -> TenantBook:
    others = file.default.limits(TenantLimits())
    tenants = {
        name: Tenant(name, given.limits(others), None if given.pools is None else frozenset(given.pools))
        for name, given in file.tenants.items()
    }
    owners = {digest: name for name, given in file.tenants.items() for digest in given.keys}
    return TenantBook(tenants, owners, others)


def _note_contradictions(document: Document, pools: frozenset[str]) -> None:
    """Find keys that two have, pools that there are not, and names that are too long for a label."""
    first_with: dict[str, str] = {}
    tenants = document.at(("tenants",))
    for name in tenants if isinstance(tenants, dict) else ():
        if len(name) > _NAME_MAX:
            document.note(("tenants", name), "got such a name", f"up to {_NAME_MAX} characters")
        for index, digest in enumerate(_list_at(document, name, "keys")):
            first = first_with.setdefault(str(digest), name)
            if first != name:
                path = ("tenants", name, "keys", index)
                document.note(path, f"got a key that {first} has too", "", "give each tenant its own keys")
        for index, pool in enumerate(_list_at(document, name, "pools")):
            if isinstance(pool, str) and pool not in pools:
                path = ("tenants", name, "pools", index)
                document.note(path, f"got {pool}, which is no pool", ", ".join(sorted(pools)))


def _list_at(document: Document, name: str, key: str) -> list[Any]:
    found = document.at(("tenants", name, key))
    return found if isinstance(found, list) else []
