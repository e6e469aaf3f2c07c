"""Tokens over a recent window: how many come, and how fast, as its clients see it."""

from collections import deque

import numpy as np

from autoscaler.domain import DropReason, Outcome, Request, TokenUse
from autoscaler.telemetry.status import UNKNOWN, TokensStatus


class TokenWindow:
    """Keeps what the last answers of one pool took; implements `ports.RequestListener`.

    An answer counts when it has ended, with all its tokens.

    Parameters
    ----------
    now : float
        When it begins [s, monotonic].
    count_max : int
        Answers kept, at most.
    age_max : float
        How long each is kept, at most [s].
    """

    def __init__(self, now: float, count_max: int = 4096, age_max: float = 60.0) -> None:
        self._began = now
        self._age_max = age_max
        self._answers: deque[tuple[float, float, TokenUse]] = deque(maxlen=count_max)
        """(when it ended, when its request arrived, what it took)"""
        self._is_used = False

    def arrived(self, request: Request, now: float) -> None:
        """Do nothing: it has no answer yet."""

    def started(self, request: Request, now: float, slots: int = 1) -> None:
        """Do nothing: it has no answer yet."""

    def slot_freed(self, service_time: float, now: float, slots: int = 1) -> None:
        """Do nothing: the last bytes of the answer may still be on their way."""

    def returned(self, request: Request, now: float, slots: int = 1) -> None:
        """Do nothing: it has no answer yet."""

    def ended(self, request: Request, outcome: Outcome, now: float, reason: DropReason | None = None) -> None:
        """Do nothing: the last bytes of the answer may still be on their way."""

    def answered(self, request: Request, use: TokenUse, now: float) -> None:
        """Keep what it took."""
        self._is_used = True
        self._answers.append((now, request.arrived_at, use))

    def summary(self, now: float) -> TokensStatus:
        """Sum up the window at `now` [s]; nothing is known of a pool that no tokens were seen of."""
        while self._answers and self._answers[0][0] < now - self._age_max:
            self._answers.popleft()
        if not self._is_used:
            return TokensStatus()
        begin = max(now - self._age_max, self._began)
        if len(self._answers) == self._answers.maxlen:  # older ones were let go of
            begin = self._answers[0][0]
        length = max(now - begin, 1.0)
        uses = [use for _, _, use in self._answers]
        streamed = [(arrived_at, use) for _, arrived_at, use in self._answers if use.is_streamed]
        first = _quantiles([use.first_at - arrived_at for arrived_at, use in streamed])
        per_token = _quantiles([use.time_per_token for _, use in streamed if use.tokens_out > 1])
        return TokensStatus(
            rate_in=sum(use.tokens_in for use in uses) / length,
            rate_out=sum(use.tokens_out for use in uses) / length,
            estimated=sum(use.is_estimated for use in uses) / len(uses) if uses else UNKNOWN,
            first_token_p50=first[0],
            first_token_p95=first[1],
            per_token_p50=per_token[0],
            per_token_p95=per_token[1],
        )


def _quantiles(values: list[float]) -> tuple[float, float]:
    """Return the median and the 95 % quantile, which are values that occurred; unknown of none."""
    if not values:
        return UNKNOWN, UNKNOWN
    median, high = np.quantile(values, [0.5, 0.95], method="inverted_cdf").tolist()
    return median, high
