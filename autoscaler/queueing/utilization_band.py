"""Servers that keep the utilization a / c under a ceiling, or inside a band."""

import math

from autoscaler.queueing.elementwise import require

ROUNDING = 1e-9
"""Relative slack when a real number of servers is made whole, so that 10 / (1 - 0.9) asks for 100."""


def servers_for_utilization(offered_load: float, utilization_high: float) -> int:
    """Return the fewest servers c with offered_load / c <= utilization_high.

    Parameters
    ----------
    offered_load : float
        a >= 0 [erlang].
    utilization_high : float
        Ceiling, in (0, 1] [1].

    Examples
    --------
    >>> servers_for_utilization(10.0, 0.75)
    14
    """
    require(0 < utilization_high <= 1, "0 < utilization_high <= 1", utilization_high)
    require(offered_load >= 0, "offered_load >= 0", offered_load)
    return math.ceil(offered_load / utilization_high * (1.0 - ROUNDING))


def band_servers(offered_load: float, utilization_low: float, utilization_high: float) -> tuple[int, int]:
    """Return the fewest and the most servers with utilization_low <= a / c <= utilization_high.

    Where no whole number of servers lies in the band, as happens for small loads, the first is greater than
    the second; the first still keeps the upper edge.

    Parameters
    ----------
    offered_load : float
        a >= 0 [erlang].
    utilization_low, utilization_high : float
        0 < low < high <= 1 [1].

    Examples
    --------
    >>> band_servers(10.0, 0.60, 0.75)
    (14, 16)
    >>> band_servers(0.5, 0.60, 0.75)
    (1, 0)
    """
    require(
        0 < utilization_low < utilization_high,
        "0 < utilization_low < utilization_high",
        utilization_low,
        utilization_high,
    )
    most = math.floor(offered_load / utilization_low * (1.0 + ROUNDING))
    return servers_for_utilization(offered_load, utilization_high), most
