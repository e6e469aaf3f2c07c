"""How long to wait before what failed is tried again."""

from random import Random


class Pauses:
    """Pauses that double from one failure to the next, up to a limit, each shortened at random.

    The shortening (by up to a half) keeps several instances, which failed in the same moment, from coming
    back in the same moment.
    """

    def __init__(self, initial: float, maximum: float, rng: Random) -> None:
        if not 0 < initial <= maximum:
            raise ValueError(f"need 0 < initial <= maximum, got {initial}, {maximum} s")
        self._initial, self._maximum, self._rng = initial, maximum, rng
        self._next = initial

    def next(self) -> float:
        """Return the pause after one more failure [s]."""
        pause, self._next = self._next, min(2 * self._next, self._maximum)
        return pause * self._rng.uniform(0.5, 1.0)

    def reset(self) -> None:
        """It worked: the next failure is a first one."""
        self._next = self._initial
