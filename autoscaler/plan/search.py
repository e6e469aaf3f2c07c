"""The fewest replicas that are enough, where more are never worse."""

from collections.abc import Callable

REPLICAS_BOUND = 100_000_000
"""No fleet is larger; what is not enough then never is."""


def fewest(enough: Callable[[int], bool], least: int) -> int:
    """Return the least n >= `least` with `enough(n)`, in O(log(n - least)) questions.

    Raises
    ------
    ValueError
        If not even `REPLICAS_BOUND` are enough.
    """
    short, step = least - 1, 1
    while not enough(short + step):
        short, step = short + step, 2 * step
        if short > REPLICAS_BOUND:
            raise ValueError(f"not even {REPLICAS_BOUND:,} replicas are enough")
    high = short + step
    while high - short > 1:
        middle = (short + high) // 2
        short, high = (short, middle) if enough(middle) else (middle, high)
    return high
