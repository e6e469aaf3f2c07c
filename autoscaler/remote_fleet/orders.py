"""What was asked for and has not come about: replicas that start, replicas that go, and what a start takes.

Nobody says which replica answers which wish, so the oldest order is taken to be met by the next replica that
gets ready. An order that is not met within a certain time is not counted on any more: the fleet is then as
large as it is. What was let go serves on until it is taken away, and is not counted on either; what somebody
else added is.
"""

from collections import deque

from autoscaler.cold_starts import ColdStarts


class Orders:
    """Replicas that were asked for and are not ready yet.

    Parameters
    ----------
    cold_starts : ColdStarts
        Told every start that was seen from order to readiness.
    patience : float
        An order that is older is not counted on [s].
    """

    def __init__(self, cold_starts: ColdStarts, patience: float) -> None:
        self._cold_starts, self._patience = cold_starts, patience
        self._placed: deque[float] = deque()
        self._leaving, self._let_go_at = 0, 0.0

    def let_go(self, replicas: int, now: float) -> None:
        """So many of those that are ready are to go."""
        self._leaving, self._let_go_at = replicas, now

    def settle(self, desired: int, ready: int, now: float) -> None:
        """Compare the wish with what is ready: what lacks is ordered now, what is too much is called off."""
        lacking = max(0, desired - ready)
        while len(self._placed) > lacking:
            self._placed.pop()
        self._placed.extend([now] * (lacking - len(self._placed)))
        self._leaving = min(self._leaving, max(0, ready - desired))

    def came(self, now: float) -> None:
        """One replica got ready; if one was ordered, it is that.

        One that was overdue has waited for supply, which says nothing of what a start takes.
        """
        if self._placed and (delay := now - self._placed.popleft()) < self._patience:
            self._cold_starts.measured(delay)

    def clear(self) -> None:
        """Forget everything that has not come about."""
        self._placed.clear()
        self._leaving = 0

    def starting(self, now: float) -> int:
        """Return how many may still be counted on [1]."""
        return sum(now - placed < self._patience for placed in self._placed)

    def leaving(self, now: float) -> int:
        """Return how many of those that are ready will be gone soon [1]."""
        return self._leaving if now - self._let_go_at < self._patience else 0

    def overdue(self, now: float) -> int:
        """Return how many should have come long ago [1]."""
        return len(self._placed) - self.starting(now)

    def __repr__(self) -> str:
        return f"<Orders open={len(self._placed)} leaving={self._leaving}>"
