"""How many clients are connected, in all and from one address, and whether there is room for one more.

Beyond the last descriptor, who connects would be left without a word, and one address that opens connections
and says nothing could take the room of all others.
"""

import asyncio
import logging
from collections import Counter

from autoscaler.proxy.descriptors import connections_that_fit
from autoscaler.proxy.options import ProxyOptions
from autoscaler.proxy.quiet_log import QuietLog

_log = logging.getLogger("autoscaler.proxy")


class Crowd:
    """Whoever is let in with `enter` is to be counted out with `leave`, once."""

    def __init__(self, options: ProxyOptions) -> None:
        self._most = options.connections_max or connections_that_fit()
        self._most_of_one = options.connections_per_client_max
        self._all = 0
        self._by_client: Counter[str] = Counter()
        self._full = QuietLog(_log)
        self._full_of_one = QuietLog(_log)

    def enter(self, client: str) -> bool:
        """Let in one more from this address, if there is room."""
        if self._all >= self._most:
            self._full.warning(
                "%d clients are connected, as many as may be; the next are told 503. "
                "Raise http.connections_max and the limit of open files (ulimit -n)",
                self._most,
            )
            return False
        if self._most_of_one is not None and self._by_client[client] >= self._most_of_one:
            self._full_of_one.warning(
                "%s has %d connections, as many as one address may have; its next are told 503. "
                "Raise http.connections_per_client_max if many clients share it",
                client,
                self._most_of_one,
            )
            return False
        self._all += 1
        self._by_client[client] += 1
        return True

    def leave(self, client: str) -> None:
        """One that was let in is gone."""
        self._all -= 1
        self._by_client[client] -= 1
        if not self._by_client[client]:
            del self._by_client[client]


def address_of(transport: asyncio.BaseTransport) -> str:
    """Return the address of the other end, without its port; empty if it has none."""
    name = transport.get_extra_info("peername")
    return str(name[0]) if isinstance(name, tuple) else ""
