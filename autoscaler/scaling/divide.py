"""How the slots of replicas are divided between several proxies that stand before all of them.

A slot belongs to one proxy at a time, so no replica ever has more requests than slots, and no request needs
anybody's leave to start. What is lost against one queue is that a request may wait at one proxy while another
has a slot to spare; so the division follows the load, at every look anew:

    what each needs   until the next look: the slots that it uses, and one for each request that waits there.
                      Where service is shorter than that, several use a slot in turn, and what is in use at
                      this moment says less than the mean
    enough for all    everybody has what it needs. What is left goes by what each lacks to its mean load, for
                      that is what will come, and by the root of it, for so random demand varies
    not enough        all have the same part of what they need, so that all wait alike

As long as everybody has what it needs, and half of what was meant to be to spare, all stays as it is; but who
leaves gives up what it does not need, so that nothing is with it when it has left.

Who shall give slots up does so first: it may use them still. What a proxy *holds* of a replica is its share
or what it uses, whichever is more; `within_reach` cuts what was wished for to what nobody else holds.
"""

from collections.abc import Mapping
from math import ceil, exp, inf, sqrt

from autoscaler.scaling.proxy_share import ProxyShare
from autoscaler.scaling.spread_shares import spread

LOAD_MEMORY = 2.0
"""Time constant of the mean load of a proxy [s]: some looks, and many shorter services."""
_RESERVE_KEPT = 0.5
"""A proxy that has so much of the slots meant to be to spare, or more, is not short of any [1]."""


class Divider:
    """Divides the slots of one pool; remembers how much load each proxy has had.

    Parameters
    ----------
    interval : float
        Between two looks [s].
    """

    def __init__(self, interval: float) -> None:
        self._interval = interval
        self._loads: dict[str, float] = {}
        self._looked_at = -inf

    def divide(
        self,
        proxies: Mapping[str, ProxyShare],
        slots: Mapping[str, int],
        now: float,
        service_time: float = inf,
    ) -> dict[str, dict[str, int]]:
        """Return the share that each proxy shall have.

        Parameters
        ----------
        proxies : mapping of str to ProxyShare
            Everybody who may hold a slot.
        slots : mapping of str to int
            Slots of each replica that takes requests [1].
        now : float
            [s, monotonic].
        service_time : float
            Mean time in a slot [s]; infinite if nobody knows, which is right for long ones.

        Returns
        -------
        dict of str to dict of str to int
            Slots by proxy and replica [1], of those that are not silent; a replica of which one has none may
            be absent. The shares of a replica, and what silent proxies hold, are no more than its slots.
        """
        uses = {name: self._use_of(proxy, service_time) for name, proxy in proxies.items()}
        self._learn(uses, now)
        heard = {name: proxy for name, proxy in proxies.items() if not proxy.is_silent}
        silent = [proxy for name, proxy in proxies.items() if name not in heard]
        free = {
            replica: max(0, count - sum(proxy.holds(replica) for proxy in silent))
            for replica, count in slots.items()
        }
        stays = exp(-self._interval / service_time) if service_time > 0 else 0.0
        needs = {
            name: max(0.0, self._loads[name] + stays * (uses[name] - self._loads[name]) - _away(proxy, slots))
            for name, proxy in heard.items()
        }
        most = {
            name: sum(count for replica, count in free.items() if proxy.reaches_it(replica))
            for name, proxy in heard.items()
        }
        totals = self._totals_within(most, heard, needs, sum(free.values()))
        if self._is_well_divided(heard, needs, totals, free):
            return {name: _kept(proxy, free) for name, proxy in heard.items()}
        return spread(heard, totals, free, {name: ceil(need) for name, need in needs.items()})

    def _use_of(self, proxy: ProxyShare, service_time: float) -> float:
        """Return the slots that it would use now, if it had as many as it wants [1]."""
        busy = sum(proxy.busy.values())
        return busy + proxy.waiting * min(1.0, service_time / self._interval)

    def _learn(self, uses: Mapping[str, float], now: float) -> None:
        """Let the mean load of each proxy follow what it would use now."""
        keep = exp(-max(0.0, now - self._looked_at) / LOAD_MEMORY)
        before, self._looked_at = self._loads, now
        self._loads = {name: use + keep * (before.get(name, use) - use) for name, use in uses.items()}

    def _totals_within(
        self,
        most: Mapping[str, int],
        proxies: Mapping[str, ProxyShare],
        needs: Mapping[str, float],
        slots: int,
    ) -> dict[str, int]:
        """Return how many slots each shall have in all, and no more than those that it reaches [1]."""
        full: dict[str, int] = {}
        while True:
            left = {name: proxy for name, proxy in proxies.items() if name not in full}
            totals = self._totals(left, {name: needs[name] for name in left}, slots - sum(full.values()))
            over = {name: most[name] for name, total in totals.items() if total > most[name]}
            if not over:
                return {**totals, **full}
            full |= over

    def _totals(
        self, proxies: Mapping[str, ProxyShare], needs: Mapping[str, float], slots: int
    ) -> dict[str, int]:
        """Return how many slots each shall have of all replicas together [1]."""
        slots = max(0, slots)
        wanting = [name for name, need in needs.items() if need > 0]
        spare = slots - sum(needs.values())
        if spare <= 0:
            return _one_each(apportion(needs, slots), wanting)
        staying = [name for name, proxy in proxies.items() if not proxy.is_leaving]
        expected = {
            name: max(0.0, self._loads[name] - needs[name]) + sqrt(max(self._loads[name], 1.0))
            for name in staying or proxies
        }
        part = spare / sum(expected.values()) if expected else 0.0
        wanted = {name: needs[name] + part * expected.get(name, 0.0) for name in proxies}
        return _one_each(apportion(wanted, slots), wanting)

    def _is_well_divided(
        self,
        proxies: Mapping[str, ProxyShare],
        needs: Mapping[str, float],
        totals: Mapping[str, int],
        free: Mapping[str, int],
    ) -> bool:
        """Whether every slot is somebody's, and nobody is short of any."""
        for replica, count in free.items():
            if sum(proxy.share.get(replica, 0) for proxy in proxies.values()) != count:
                return False
        for name, proxy in proxies.items():
            if not all(proxy.reaches_it(replica) for replica, share in proxy.share.items() if share):
                return False
            enough = min(needs[name], totals[name])
            if proxy.is_leaving and sum(_kept(proxy, free).values()) > totals[name]:
                return False
            if sum(_kept(proxy, free).values()) < enough + _RESERVE_KEPT * (totals[name] - enough):
                return False
        return True


def apportion(weights: Mapping[str, float], total: int) -> dict[str, int]:
    """Divide `total` by weights into whole numbers, by the largest remainder.

    Equally, if no weight is above 0. Ties go to whoever comes first by name.
    """
    if not weights:
        return {}
    whole = sum(weights.values())
    parts = {
        name: total * (weight / whole if whole else 1 / len(weights)) for name, weight in weights.items()
    }
    given = {name: int(part) for name, part in parts.items()}
    by_remainder = sorted(parts, key=lambda name: (given[name] - parts[name], name))
    for name in by_remainder[: total - sum(given.values())]:
        given[name] += 1
    return given


def _one_each(totals: dict[str, int], names: list[str]) -> dict[str, int]:
    """Let everybody of `names` have a slot at least, as long as somebody has one more than that."""
    for name in sorted(names):
        if totals[name]:
            continue
        richest = max(sorted(totals), key=lambda each: totals[each])
        if totals[richest] > 1:
            totals[richest] -= 1
            totals[name] = 1
    return totals


def _away(proxy: ProxyShare, slots: Mapping[str, int]) -> int:
    """Return what it uses of replicas that it can be given no slots of [1]: it will need none instead."""
    return sum(
        count
        for replica, count in proxy.busy.items()
        if not slots.get(replica) or not proxy.reaches_it(replica)
    )


def _kept(proxy: ProxyShare, free: Mapping[str, int]) -> dict[str, int]:
    """Return the share that it has, of the replicas that take requests."""
    return {replica: count for replica, count in proxy.share.items() if count and replica in free}
