"""What one answer of a language model took: tokens, and when they came."""

from math import isnan, nan

from autoscaler.domain.value import value


@value
class TokenUse:
    """The tokens of one answer.

    Attributes
    ----------
    tokens_in, tokens_out : int
        Of the prompt and of the answer [tokens].
    is_estimated : bool
        Whether the server did not say it, so that it is estimated.
    started_at : float
        When the request got the slot that it was answered from [s, monotonic].
    first_at, last_at : float
        When the first and the last piece of text came [s, monotonic]; not-a-number without a stream.
    """

    tokens_in: int
    tokens_out: int
    is_estimated: bool
    started_at: float
    first_at: float = nan
    last_at: float = nan

    @property
    def is_streamed(self) -> bool:
        """Whether it is known when its text came."""
        return not isnan(self.first_at)

    @property
    def time_per_token(self) -> float:
        """Mean time from one token to the next [s]; not-a-number for fewer than two, or without a stream."""
        return (self.last_at - self.first_at) / (self.tokens_out - 1) if self.tokens_out > 1 else nan
