"""What one of several proxies has and uses of the replicas that they share, and what it can be given now."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ProxyShare:
    """What a proxy has and uses of the replicas, by replica, and who waits there."""

    waiting: int = 0
    """Requests in its queue [1]."""
    share: Mapping[str, int] = field(default_factory=dict)
    """Slots that it may use [1]."""
    busy: Mapping[str, int] = field(default_factory=dict)
    """Slots that it does use [1]; more than its share, where that was lowered meanwhile."""
    unreachable: frozenset[str] = frozenset()
    """Replicas that do not answer to it, as far as it knows."""
    is_leaving: bool = False
    """Whether it takes no new requests; it needs slots for those that it has."""
    is_silent: bool = False
    """Whether it does not answer now: what it holds is nobody else's until it is known to be gone."""

    def holds(self, replica: str) -> int:
        """Slots of a replica that nobody else may have now [1]."""
        return max(self.share.get(replica, 0), self.busy.get(replica, 0))

    def reaches_it(self, replica: str) -> bool:
        """Whether a replica answers to it."""
        return replica not in self.unreachable


def within_reach(
    wanted: Mapping[str, int], name: str, proxies: Mapping[str, ProxyShare], slots: Mapping[str, int]
) -> dict[str, int]:
    """Return what of the wanted slots a proxy can be given now, because nobody else holds them.

    Parameters
    ----------
    wanted : mapping of str to int
        Slots that it shall have, by replica [1].
    name : str
        Of the proxy.
    proxies : mapping of str to ProxyShare
        Everybody who may hold a slot, itself too.
    slots : mapping of str to int
        Slots of each replica [1].
    """
    others = [proxy for each, proxy in proxies.items() if each != name]
    return {
        replica: max(0, min(share, slots.get(replica, 0) - sum(proxy.holds(replica) for proxy in others)))
        for replica, share in wanted.items()
    }
