"""How the slots that each proxy shall have in all are spread over the replicas.

Evenly, so that proxies that are unequally busy load no replica more than another; but for what is in use,
which stays with whoever uses it: nobody else could have it soon.
"""

from collections.abc import Mapping

from autoscaler.scaling.proxy_share import ProxyShare


def spread(
    proxies: Mapping[str, ProxyShare],
    totals: Mapping[str, int],
    free: Mapping[str, int],
    needs: Mapping[str, int],
) -> dict[str, dict[str, int]]:
    """Give everybody its total of slots.

    First what it uses; then the same part of every replica, as far as slots are whole. What is left of a
    replica stays with whoever has it, as far as it lacks slots still, and else goes to whoever lacks most.
    Replicas that few reach come first. Who has too many for that gives some to who lacks slots still,
    and who has some to spare to who has not what it needs.

    Parameters
    ----------
    proxies : mapping of str to ProxyShare
        Those that are given slots.
    totals : mapping of str to int
        Slots that each shall have [1]; together as many as there are, or more.
    free : mapping of str to int
        Slots of each replica that can be given [1].
    needs : mapping of str to int
        Slots that each would use now [1].

    Returns
    -------
    dict of str to dict of str to int
        Slots by proxy and replica [1]; all that are free of a replica that anybody reaches.
    """
    giving = _Giving(proxies, totals, free)
    free = dict(sorted(free.items(), key=lambda each: len(giving.reaching(each[0]))))
    for replica, count in free.items():
        reaching = giving.reaching(replica)
        for name in reaching:
            giving.up_to(proxies[name].busy.get(replica, 0), name, replica)
        whole = sum(totals[name] for name in reaching)
        for name in reaching if whole else ():
            giving.even[name, replica] = count * totals[name] // whole
    for (name, replica), part in giving.even.items():
        giving.up_to(part, name, replica)
    for replica in free:
        for name in giving.reaching(replica):
            giving.up_to(proxies[name].holds(replica), name, replica)
    for replica in free:
        giving.rest(replica)
    for replica in free:
        giving.swap(replica, totals, totals)
    for replica in free:
        giving.swap(replica, needs, {name: max(1, need) for name, need in needs.items()})
    return {
        name: {replica: count for replica, count in share.items() if count}
        for name, share in giving.shares.items()
    }


class _Giving:
    """Slots on their way: what everybody has got so far and lacks, and what is left of each replica."""

    def __init__(
        self, proxies: Mapping[str, ProxyShare], totals: Mapping[str, int], free: Mapping[str, int]
    ) -> None:
        self._proxies = proxies
        self._totals, self._lacks, self._left = totals, dict(totals), dict(free)
        names = sorted(proxies)
        self._reaching = {
            replica: [name for name in names if proxies[name].reaches_it(replica)] for replica in free
        }
        self.shares: dict[str, dict[str, int]] = {name: {} for name in proxies}
        self.even: dict[tuple[str, str], int] = {}
        """By proxy and replica, the whole part of what would be even."""

    def reaching(self, replica: str) -> list[str]:
        """Return who can use a replica, by name."""
        return self._reaching[replica]

    def up_to(self, count: int, name: str, replica: str) -> None:
        """Let a proxy have so many slots of a replica, as far as there are, and it lacks any."""
        has = self.shares[name].get(replica, 0)
        self._give(max(0, min(self._left[replica], self._lacks[name], count - has)), name, replica)

    def rest(self, replica: str) -> None:
        """Give away what is left of a replica, a slot at a time to whoever lacks most."""
        names = self.reaching(replica)
        while self._left[replica] and names:
            self._give(1, max(names, key=lambda name: self._lacks[name]), replica)

    def swap(self, replica: str, least: Mapping[str, int], most: Mapping[str, int]) -> None:
        """Let those with less than `least` have what others with more than `most` do not use of a replica."""
        names = self.reaching(replica)
        lacking = [name for name in names if self._has(name) < least[name]]
        for name in lacking:
            for other in names:
                idle = self.shares[other].get(replica, 0) - self._proxies[other].busy.get(replica, 0)
                count = min(least[name] - self._has(name), self._has(other) - most[other], idle)
                if count > 0:
                    self._give(-count, other, replica)
                    self._give(count, name, replica)

    def _has(self, name: str) -> int:
        return self._totals[name] - self._lacks[name]

    def _give(self, count: int, name: str, replica: str) -> None:
        if count:
            self.shares[name][replica] = self.shares[name].get(replica, 0) + count
            self._lacks[name] -= count
            self._left[replica] -= count
