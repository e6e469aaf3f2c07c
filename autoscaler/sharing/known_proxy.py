"""What a controller knows of one proxy: what it said last, and which orders may reach it still.

An order is for one state, and void in the next one. So one that was not confirmed may come in as long as the
state is the one that it was for; until then its shares count as the proxy's, and so do those that it has.
Another controller, which led before, may have sent orders too; so a proxy is *known* only when it has taken
in one of ours, which makes all that were sent before void.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from autoscaler.scaling.proxy_share import ProxyShare
from autoscaler.sharing.message import SharesHeld


@dataclass(eq=False)
class KnownProxy:
    """One address at which a proxy is, or shall be."""

    silent_since: float
    """When it was listed, or first did not answer since it was heard last [s, monotonic]. Time in which it
    was not asked says nothing of it: this controller may have stood still."""
    is_known: bool = False
    """Whether nobody's order but ours can come in there."""
    refusals: int = 0
    """Connections that were refused, in a row [1]."""
    tag: str = ""
    """Of its state as last heard; empty until then."""
    held: SharesHeld = field(default_factory=SharesHeld)
    was_heard: bool = False
    is_silent: bool = True
    _under_way: Mapping[str, int] | None = None
    """Shares of an order for this state that may come in still."""

    @property
    def process(self) -> str:
        """Which process it is; empty of one that was never heard."""
        return self.tag.rpartition("-")[0]

    @property
    def is_settled(self) -> bool:
        """Whether no order is under way to it, for all that is known."""
        return self.is_known and self._under_way is None

    @property
    def told(self) -> dict[str, int]:
        """The share of each replica that it has, as it said [1]."""
        return {replica: each.share for replica, each in self.held.replicas.items()}

    @property
    def share(self) -> dict[str, int]:
        """The share of each replica that it may have by now [1]."""
        return _more_of(self.told, self._under_way or {})

    def is_told(self, share: Mapping[str, int]) -> None:
        """An order with these shares goes out, for the state as last heard."""
        self._under_way = _more_of(self._under_way or {}, share)

    def said(self, held: SharesHeld, tag: str, *, confirms: bool) -> None:
        """It answered; `confirms` if it has taken in the order that it was sent."""
        if confirms:
            self.is_known = True
        elif tag != self.tag:
            self.is_known = False  # another process, or another's order
        if confirms or tag != self.tag:
            self._under_way = None
        self.tag, self.held, self.was_heard = tag, held, True
        self.is_silent, self.refusals = False, 0

    def said_nothing(self, now: float, *, refused: bool) -> None:
        """It did not answer; `refused` if its machine said that nobody listens there."""
        if not self.is_silent:
            self.is_silent, self.silent_since = True, now
        self.refusals = self.refusals + 1 if refused else 0

    def as_divided(self) -> ProxyShare:
        """Return what is divided by."""
        replicas = self.held.replicas.items()
        return ProxyShare(
            waiting=self.held.waiting,
            share=self.share,
            busy={**self.held.gone, **{replica: each.busy for replica, each in replicas}},
            unreachable=frozenset(replica for replica, each in replicas if not each.is_ready),
            is_leaving=self.held.is_leaving,
            is_silent=self.is_silent,
        )


def may_hold_the_rest(proxies: Mapping[str, ProxyShare], slots: Mapping[str, int]) -> ProxyShare:
    """Return one that is not known: it may hold all that the others do not."""
    rest = {
        replica: max(0, count - sum(proxy.holds(replica) for proxy in proxies.values()))
        for replica, count in slots.items()
    }
    return ProxyShare(share=rest, is_silent=True)


def _more_of(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return {each: max(one.get(each, 0), other.get(each, 0)) for each in one.keys() | other.keys()}
