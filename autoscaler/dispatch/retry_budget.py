"""How many requests may be tried again: a share of what is sent, and a few a second besides.

A request that provably did not execute is sent again, which is right for one and ruinous for all: when every
replica refuses, each arrival would become several. A token bucket holds that down. Every send fills in a
share of a token and time fills in a few, and every retry takes a whole one.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RetryBudgetOptions:
    """How much trying again is allowed."""

    share: float = 0.2
    """Retries for each request sent [1]. Lower it where a server that refuses must be left alone."""
    rate: float = 10.0
    """Retries besides, so that a pool of little traffic can retry at all [1/s]."""
    burst: float = 100.0
    """So many at once at most, after a quiet time [1]: as many as run on the largest replica, for they all
    come back together when it ends."""

    def __post_init__(self) -> None:
        for name in ("share", "rate"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"need {name} >= 0, got {getattr(self, name)}")
        if not self.burst >= 1:
            raise ValueError(f"need burst >= 1, got {self.burst}")


class RetryBudget:
    """A token bucket; it starts full."""

    def __init__(self, options: RetryBudgetOptions) -> None:
        self._options = options
        self._tokens = options.burst
        self._sent = 0
        self._filled_at: float | None = None

    def take(self, sent: int, now: float) -> bool:
        """Take one token at `now` [s], after `sent` requests were sent in all; False if there is none."""
        options = self._options
        passed = 0.0 if self._filled_at is None else now - self._filled_at
        filled = options.share * (sent - self._sent) + options.rate * passed
        self._tokens = min(options.burst, self._tokens + filled)
        self._sent, self._filled_at = sent, now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True
