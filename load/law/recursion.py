"""First come, first served over c servers, request by request (Kiefer and Wolfowitz 1955): pure.

Each request takes the server that is free first. Here a server is a slot, and it is taken for the service
time that the model server saw and an overhead: from its last byte until the next request is at its door.
"""

from dataclasses import dataclass
from heapq import heapreplace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

Floats = NDArray[np.float64]

OVERHEAD_MAX = 0.02
"""A larger overhead is not looked for [s]."""


def waits_of(arrivals: Floats, services: Floats, servers: int, overhead: float = 0.0) -> Floats:
    """Return how long each request waits for one of c servers.

    Parameters
    ----------
    arrivals, services : ndarray, shape (n,)  [s]
        In order of arrival.
    servers : int
        c >= 1.
    overhead : float
        Added to each service [s].

    Returns
    -------
    ndarray, shape (n,)  [s]

    Examples
    --------
    >>> waits_of(np.array([0.0, 1.0, 2.0]), np.array([4.0, 4.0, 4.0]), servers=2).tolist()
    [0.0, 0.0, 2.0]
    """
    free_at = [-np.inf] * servers
    waits = np.empty(len(arrivals))
    for number, (arrival, service) in enumerate(zip(arrivals.tolist(), services.tolist(), strict=True)):
        begin = max(arrival, free_at[0])
        heapreplace(free_at, begin + service + overhead)
        waits[number] = begin - arrival
    return waits


@dataclass(frozen=True)
class Fit:
    """What makes the recursion agree with what was measured."""

    overhead: float
    """Slot time that each request costs beyond its service [s]."""
    transit: float
    """From the client to the server for a request that waits for nobody [s]."""
    waits: Floats
    """By the recursion, shape (n,) [s]."""
    differences: Floats
    """Measured, less `transit`, less `waits`; shape (n,) [s]."""


def fit_overhead(arrivals: Floats, begins: Floats, services: Floats, servers: int) -> Fit:
    """Find the overhead by which the recursion comes nearest to the waits that were measured.

    Parameters
    ----------
    arrivals, begins, services : ndarray, shape (n,)  [s]
        When each request was sent, when it came to the server, and how long it was served; in order of
        arrival.
    servers : int
        c >= 1.

    Notes
    -----
    Nearest in the mean absolute difference, which a few stalls of the machine do not move. The transit is
    the median of what passed between client and server for those who waited for nobody.
    """
    passed = begins - arrivals

    def at(overhead: float) -> Fit:
        waits = waits_of(arrivals, services, servers, overhead)
        at_once = passed[waits == 0.0]
        transit = float(np.median(at_once)) if at_once.size else 0.0
        return Fit(overhead, transit, waits, passed - transit - waits)

    found = minimize_scalar(
        lambda overhead: float(np.mean(np.abs(at(overhead).differences))),
        bounds=(0.0, OVERHEAD_MAX),
        method="bounded",
        options={"xatol": 1e-5},
    )
    return at(float(found.x))
