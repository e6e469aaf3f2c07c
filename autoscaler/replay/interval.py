"""Observations of adjacent intervals, joined into the one of the whole."""

from collections.abc import Sequence
from dataclasses import replace

from autoscaler.domain import Observation


def joined(pieces: Sequence[Observation]) -> Observation:
    """Return what one observation over all of the time would have shown; at least one piece, oldest first."""
    last = pieces[-1]
    if len(pieces) == 1:
        return last
    interval = sum(piece.interval for piece in pieces)
    return replace(
        last,
        interval=interval,
        arrivals=sum(piece.arrivals for piece in pieces),
        completions=sum(piece.completions for piece in pieces),
        service_time_sum=sum(piece.service_time_sum for piece in pieces),
        service_time_square_sum=sum(piece.service_time_square_sum for piece in pieces),
        busy_slots_mean=sum(piece.busy_slots_mean * piece.interval for piece in pieces) / interval,
        rejected=sum(piece.rejected for piece in pieces),
        tokens_in=sum(piece.tokens_in for piece in pieces),
        tokens_out=sum(piece.tokens_out for piece in pieces),
    )
