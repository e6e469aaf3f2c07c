"""Erlang B the other way round: servers for a loss, and the load that servers can carry with it.

Both are real numbers, found as roots of the continuous extension of `erlang`.
"""

import math
from collections.abc import Callable

import numpy as np
from scipy import special
from scipy.optimize import elementwise

from autoscaler.queueing.elementwise import Array, Number, require, result
from autoscaler.queueing.erlang import log_erlang_b


def servers_for_blocking(offered_load: Number | float, blocking: float) -> Number:
    """Return the least real-valued c with erlang_b(c, offered_load) <= blocking.

    Round it up for whole servers: `math.ceil`.

    Parameters
    ----------
    offered_load : float or ndarray
        a >= 0 [erlang].
    blocking : float
        Probability of loss that is still good, in (0, 1] [1].

    Examples
    --------
    >>> math.ceil(servers_for_blocking(offered_load=29.0, blocking=0.01))
    40
    """
    a = np.asarray(offered_load, dtype=float)
    require(np.isfinite(a) & (a >= 0), "a finite offered_load >= 0", offered_load)
    require(0 < blocking <= 1, "0 < blocking <= 1", blocking)
    # B(0, a) = 1, and at the upper end B is below the smallest double, whatever the load.
    upper = a + 40.0 * np.sqrt(a) + 200.0
    root = _root(lambda c, a: log_erlang_b(c, a) - math.log(blocking), np.zeros_like(a), upper, a)
    servers: Number = result(root)
    return servers


def offered_load_for_blocking(servers: Number | float, blocking: float) -> Number:
    """Return the offered load a at which erlang_b(servers, a) = blocking: what the servers can carry.

    Parameters
    ----------
    servers : float or ndarray
        c > 0 [1].
    blocking : float
        Probability of loss, in (0, 1) [1].

    Returns
    -------
    float or ndarray
        Offered load [erlang].

    Examples
    --------
    >>> round(offered_load_for_blocking(servers=40, blocking=0.01), 1)
    29.0
    """
    c = np.asarray(servers, dtype=float)
    require(np.isfinite(c) & (c > 0), "a finite servers > 0", servers)
    require(0 < blocking < 1, "0 < blocking < 1", blocking)
    # B <= a^c / Gamma(c + 1), and at least a - c of a erlangs are lost: B >= 1 - c / a. The load of a tiny
    # fraction of a server spans hundreds of decades, so the search is for its logarithm.
    lower = (math.log(blocking) + special.gammaln(c + 1.0)) / c - 1.0
    upper = np.log(c / (1.0 - blocking)) + 1.0
    root = _root(lambda x, c: log_erlang_b(c, np.exp(x)) - math.log(blocking), lower, upper, c)
    load: Number = result(np.exp(root))
    return load


def _root(function: Callable[[Array, Array], Array], lower: Array, upper: Array, parameter: Array) -> Array:
    """Where `function(x, parameter)` changes sign between `lower` and `upper`, for each element."""
    found = elementwise.find_root(function, (lower, upper), args=(parameter,))
    root: Array = found.x
    return root
