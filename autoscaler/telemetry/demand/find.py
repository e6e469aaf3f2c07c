"""Finds the doors of a pool that need no cluster to be found: in a list, or in the DNS.

A name that is known and has no address, or no record, is an answer: nobody is there. A name server that does
not answer says nothing, and what was known stays.
"""

from collections.abc import Collection

import dns.asyncresolver
import dns.exception
import dns.rdatatype
import dns.resolver

from autoscaler.remote_fleet.dns import look_up
from autoscaler.telemetry.demand.options import ListedDoors, NamedDoors, ServiceRecordDoors

_PATIENCE = 5.0
"""For an answer of the DNS [s]."""
_NO_NAME_SERVER = "no name server answers; check the network of this machine"


class Listed:
    """Those of a list."""

    trouble = ""

    def __init__(self, options: ListedDoors) -> None:
        self._urls = tuple(url.rstrip("/") for url in options.urls)

    async def look(self) -> Collection[str]:
        """Return them."""
        return self._urls

    async def close(self) -> None:
        """Do nothing."""


class Named:
    """Every address that a name has."""

    trouble = _NO_NAME_SERVER

    def __init__(self, options: NamedDoors) -> None:
        self._url = options.url

    async def look(self) -> Collection[str] | None:
        """Return a base URL for each address; None if no name server answers."""
        try:
            found = await look_up(self._url)
        except UnicodeError:  # such as two dots in a row: nothing can have that name
            return ()
        return None if found is None else [member.url for member in found]

    async def close(self) -> None:
        """Do nothing."""


class ServiceRecord:
    """Every target that a service record (SRV, RFC 2782) names; priorities and weights are of no concern.

    Parameters
    ----------
    options : ServiceRecordDoors
        Which record.
    resolver : dns.asyncresolver.Resolver, optional
        Who is asked; the name servers of this machine unless given.
    """

    trouble = _NO_NAME_SERVER

    def __init__(
        self, options: ServiceRecordDoors, resolver: dns.asyncresolver.Resolver | None = None
    ) -> None:
        self._options, self._resolver = options, resolver

    async def look(self) -> Collection[str] | None:
        """Return a base URL for each target; None if no name server answers."""
        try:
            if self._resolver is None:
                self._resolver = dns.asyncresolver.Resolver()
            answer = await self._resolver.resolve(
                self._options.name, dns.rdatatype.SRV, lifetime=_PATIENCE, raise_on_no_answer=False
            )
        except dns.resolver.NXDOMAIN:
            return ()
        except (dns.exception.DNSException, OSError):
            return None
        scheme = "https" if self._options.is_https else "http"
        hosts = sorted((each.target.to_text(omit_final_dot=True), each.port) for each in answer)
        return [f"{scheme}://{host}:{port}" for host, port in hosts if host]

    async def close(self) -> None:
        """Do nothing."""
