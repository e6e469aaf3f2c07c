"""When a refused client shall come back: the honest `Retry-After`.

Two things stand between a refused request and its slot. The line is too long by some seconds, and drains at
the rate at which services end; before that nobody need try. And it is not alone: whoever else was refused
comes back too, and fresh requests arrive, so a moment told to everybody would be right for nobody. So every
refused client is told a later moment than the one before it, and the moments are spaced so that those who
come back and those who arrive are together no more than `COMPETITION` times what can be served. So a place
is found by every second one of them or better.

    gap = 1 / (capacity * share);  share = COMPETITION - arrival_rate / capacity, in SHARE_MIN .. SHARE_MAX

with the capacity c / E[S] [1/s] and the arrival rate of `door_rate.py`. The busier the door, the wider the
gap, and the farther away move the moments, for with so many at the door no honest moment is near. What is
measured: docs/queue.md.
"""

COMPETITION = 2.0
"""Arrivals and returns together, in capacities [1]: at 2 every second one would find a place. As measured
arrivals hold the returns already, the moments lie farther apart than that, and more than half find one."""

SHARE_MIN, SHARE_MAX = 0.4, 0.8
"""Returns, in capacities [1]: never fewer, for told moments must lie somewhere; and never more."""

RETRY_AFTER_MAX = 3600.0
"""Nobody is told to wait longer [s]: what will be by then nobody knows."""


class Comebacks:
    """Tells each refused client its own moment to come back."""

    def __init__(self) -> None:
        self._told_last = 0.0

    def tell(self, now: float, excess: float, capacity: float, arrival_rate: float) -> float:
        """Return after how long one refused at `now` shall come back [s].

        Parameters
        ----------
        now : float
            [s]
        excess : float
            So much too long is the wait for it, >= 0 [s].
        capacity : float
            c / E[S] > 0, services that end while all slots are busy [1/s].
        arrival_rate : float
            At the door [1/s].
        """
        share = min(SHARE_MAX, max(SHARE_MIN, COMPETITION - arrival_rate / capacity))
        at = max(now + excess, self._told_last + 1 / (capacity * share))
        self._told_last = min(at, now + RETRY_AFTER_MAX)
        return self._told_last - now
