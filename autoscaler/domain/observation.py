"""What one control interval showed, of one pool: the only thing the control path learns from."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Observation:
    """Facts of one control interval, counted at the door and in the ledger of slots.

    A missing observation is not an observation of zero: whoever has none passes None.

    Attributes
    ----------
    interval : float
        Length [s].
    arrivals : int
        Requests offered: accepted, held, refused and expired ones alike [requests].
    completions : int
        Services that ended in the interval, whatever their answer [requests].
    service_time_sum, service_time_square_sum : float
        Over those services: sum of S [s] and of S² [s²].
    busy_slots_mean : float
        Time average of slots in use [1].
    in_flight : int
        Waiting and in service at the end of the interval [requests].
    queue_depth : int
        Waiting at the end of the interval [requests].
    oldest_wait : float
        How long the first in the queue has waited at the end [s]; 0 if nobody waits.
    wall_time : float
        Calendar time at the end [s since the epoch, UTC]; seasons follow it.
    rejected : int
        Arrivals that were refused at the door [requests]; they count in `arrivals` too.
    tokens_in, tokens_out : int
        Of the answers of language models that passed in the interval, as told or estimated [tokens].
    is_partial : bool
        Whether a part of the demand could not be seen for so long that what stands here for it is only what
        was last known; nothing is lowered on it.
    """

    interval: float
    arrivals: int
    completions: int
    service_time_sum: float
    service_time_square_sum: float
    busy_slots_mean: float
    in_flight: int
    queue_depth: int
    oldest_wait: float
    wall_time: float
    rejected: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    is_partial: bool = False
