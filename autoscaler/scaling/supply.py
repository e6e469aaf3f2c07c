"""Whether what is ordered comes: learned from the orders, so that what does not come is not ordered for ever.

Each order that comes, or gets late, is a verdict. Verdicts fade with every further one and with time; the
share of those that came is the probability that an order comes. Below a half, with orders late, supply is
*short*: then no more is ordered than a probe. As long as the platform shows the probe it stands, for in many
places it has its turn in a queue; now and then it is called off and made anew, in case it is stuck, ever more
seldom. Where it is not shown it was refused, and is made again after pauses that double. When it comes, four
may be ordered, then sixteen, and so on: supply that is back is used within a few starts, and supply that
comes in drops never has dozens of orders waiting for it.

One failure makes no shortage: else a single replica that does not start would keep the fleet from growing.

Nothing is learned while nobody carries decisions out.
"""

from dataclasses import dataclass
from math import exp, inf, nan

from autoscaler.domain import Fleet
from autoscaler.scaling.open_orders import OpenOrders, OrdersNow

_VERDICT_FADE = 0.75
"""Weight of a verdict after one more: the last four make the most of it [1]."""
_VERDICT_MEMORY = 1800.0
"""And after so long it weighs 1/e [s]: supply of an hour ago says little."""
_PRIOR = 1.0
"""Before any verdict an order is believed to come; the weight of that belief [verdicts]."""
_VERDICTS_AT_ONCE = 50
"""More at once weigh as so many: all before them is forgotten anyway."""
_SHORT_BELOW, _LIKELY_ABOVE = 0.5, 0.67
"""Probabilities at which a shortage begins, and ends [1]."""
_GROWTH = 4
_PAUSE, _PAUSE_MAX = 60.0, 900.0
"""After a refusal, doubling up to [s]."""
_STANDS_MAX = 3600.0
"""A probe is made anew after a patience, which doubles up to [s]."""


@dataclass(frozen=True, slots=True)
class Supply:
    """What may be counted on, and ordered, at one step.

    Attributes
    ----------
    credited : int
        Starting replicas that are likely to come in time [1].
    late : int
        Orders that have not come in their time [1].
    in_time : int
        Orders that may still come in time [1].
    probes : int or None
        None unless supply is short; then there may be so many orders, although they are unlikely to come [1].
    probability : float
        That an order comes [1]; NaN if nothing is known of late.
    delay : float
        From an order to its replica, the longest of late [s]; NaN if none was seen.
    """

    credited: int
    late: int = 0
    in_time: int = 0
    probes: int | None = None
    probability: float = nan
    delay: float = nan


class SupplyWatch:
    """Learns from the orders of one pool; `update` takes in one step."""

    def __init__(self) -> None:
        self._orders = OpenOrders()
        self._verdicts = _Verdicts()
        self._probing = _Probing()
        self._before: Fleet | None = None
        self._late = 0
        self._judged_at = 0.0

    def update(self, fleet: Fleet, now: float) -> Supply:
        """Take in what there is at `now` [s]; return what may be counted on, and ordered."""
        before, self._before = self._before, fleet
        self._verdicts.fade(now)
        orders = self._orders.update(fleet, now)
        if before is None or fleet.asked is None:
            self._late, self._probing = 0, _Probing()
            return Supply(fleet.starting, fleet.overdue, in_time=fleet.starting)
        self._judge(orders, now)
        return Supply(
            credited=orders.credited,
            late=orders.late,
            in_time=orders.open - orders.late,
            probes=self._probing.update(
                orders, self._verdicts.belief, now, has_node=_has_node(fleet, before)
            ),
            probability=self._verdicts.probability,
            delay=self._orders.delay,
        )

    def _judge(self, orders: OrdersNow, now: float) -> None:
        """Judge orders that came, and those that got late; and those that stay late for long once more."""
        self._verdicts.add(orders.came, succeeded=True)
        known = max(0, min(self._late - orders.came, orders.open))
        fresh = orders.late - known
        if fresh <= 0 and orders.late and now - self._judged_at >= orders.patience:
            fresh = 1
        if fresh > 0:
            self._verdicts.add(fresh, succeeded=False)
            self._judged_at = now
        self._late = orders.late


class _Verdicts:
    """Faded counts of orders that came, and of those that did not in their time."""

    def __init__(self) -> None:
        self._came = self._failed = 0.0
        self._at = 0.0

    def fade(self, now: float) -> None:
        """Let time pass up to `now` [s]."""
        fade = exp(-max(0.0, now - self._at) / _VERDICT_MEMORY)
        self._came, self._failed, self._at = fade * self._came, fade * self._failed, now

    def add(self, verdicts: int, *, succeeded: bool) -> None:
        """Take in so many at once."""
        for _ in range(min(verdicts, _VERDICTS_AT_ONCE)):
            self._came = _VERDICT_FADE * self._came + succeeded
            self._failed = _VERDICT_FADE * self._failed + (not succeeded)

    @property
    def belief(self) -> float:
        """Probability that the next order comes, where nothing is known too [1]."""
        return (self._came + _PRIOR) / (self._came + self._failed + _PRIOR)

    @property
    def probability(self) -> float:
        """The same; NaN if there is hardly a verdict left."""
        return self.belief if self._came + self._failed >= 1 / 2 else nan


class _Probing:
    """How many orders there may be while supply is short."""

    def __init__(self) -> None:
        self._allowed: int | None = None
        self._tries = 0
        self._paused_until = -inf
        self._stands_until = inf

    def update(self, orders: OrdersNow, belief: float, now: float, *, has_node: bool) -> int | None:
        """Return how many there may be from `now` [s] on; None: as many as are needed."""
        if self._allowed is None:
            if not orders.late or belief >= _SHORT_BELOW:
                return None
            self._begin(1, orders, now)
            self._try_anew_if_due(orders, now)
        elif belief >= _LIKELY_ABOVE and not orders.late and self._nothing_is_doubtful(orders):
            self._allowed = None  # by what came, or because what failed is forgotten
            return None
        elif has_node or (orders.came and 2 * orders.open <= self._allowed):
            self._begin(_GROWTH * self._allowed, orders, now)
        elif orders.late and now >= self._paused_until:
            self._allowed = 1
            self._try_anew_if_due(orders, now)
        return 0 if now <= self._paused_until else self._allowed

    def _nothing_is_doubtful(self, orders: OrdersNow) -> bool:
        """Whether all that was ordered came, or so much may be ordered that these are no probes any more."""
        return not orders.open or (self._allowed or 0) > _GROWTH**3

    def _begin(self, allowed: int, orders: OrdersNow, now: float) -> None:
        self._allowed, self._tries = allowed, 0
        self._stands_until = now + orders.patience

    def _try_anew_if_due(self, orders: OrdersNow, now: float) -> None:
        """Call a refused order off for a while, and a stuck one for this step."""
        if orders.refused:
            self._paused_until = now + min(_PAUSE * 2.0**self._tries, _PAUSE_MAX)
        elif now >= self._stands_until:
            self._paused_until = now
        else:
            return
        self._tries = min(self._tries + 1, 20)
        longest = max(_STANDS_MAX, orders.patience)
        self._stands_until = now + min(orders.patience * 2.0**self._tries, longest)


def _has_node(fleet: Fleet, before: Fleet) -> bool:
    """Whether the platform says now that an order, which it said would not come, does."""
    called_off = (fleet.asked or 0) < (before.asked or 0)
    return fleet.overdue < before.overdue and fleet.starting > before.starting and not called_off
