"""Erlang's loss and delay formulas, and their inverses.

Model: Poisson arrivals, c servers, offered load a = arrival rate x mean service time. In Erlang B a customer
who finds all servers busy is lost (and then only the mean of the service time matters); in Erlang C he waits.

The textbook recursion on c is exact, but takes c steps and needs a whole number of servers. Here B is the
continuous extension, which agrees with it at every whole c and costs the same for 10 servers as for a
million:

    1 / B(c, a) = integral over t > 0 of  a exp(-a t) (1 + t)^c
                = Gamma(c + 1, a) exp(a) a^-c          (upper incomplete gamma function)

so B is a Poisson probability over a Poisson tail. Both are taken where neither underflows: below and around
capacity from the library's incomplete gamma function, in overload from Legendre's continued fraction.
C follows from B by a sum of positive terms, so nothing cancels.

Sources: Jagerman, "Some properties of the Erlang loss function", Bell System Technical Journal 53 (1974);
Cooper, *Introduction to Queueing Theory* (1981), ch. 3; Loader, "Fast and accurate computation of binomial
probabilities" (2000) for the saddle-point form of the Poisson probability.
"""

import math
from collections.abc import Callable

import numpy as np
from scipy import special
from scipy.optimize import elementwise

from autoscaler.queueing.elementwise import Array, Number, require, result

SMALL_SERVERS = 16.0
"""Below so many servers the Poisson probability is taken directly, above by its saddle-point form."""

FRACTION_TERMS_MAX = 500
"""Bound on the terms of the continued fraction; where it is used, a few dozen are enough."""


def erlang_b(servers: Number | float, offered_load: Number | float) -> Number:
    """Return the probability that an arrival finds every server busy and is lost.

    Parameters
    ----------
    servers : float or ndarray
        Servers c >= 0 [1]; between whole numbers the continuous extension.
    offered_load : float or ndarray
        a = arrival_rate * service_time_mean [erlang], a >= 0; it may exceed `servers`.

    Returns
    -------
    float or ndarray
        Blocking probability, in [0, 1]; below the smallest double it is 0.

    Raises
    ------
    ValueError
        If `servers` or `offered_load` is negative or not finite.

    Notes
    -----
    Relative error below 1e-12 for c <= 300, below 1e-10 for c and a up to 1e6. Any service-time
    distribution. Cooper (1981), ch. 3; Jagerman (1974) for real-valued c.

    Examples
    --------
    >>> round(erlang_b(servers=10, offered_load=4.46), 4)
    0.01
    """
    c, a = _checked(servers, offered_load)
    blocking: Number = result(np.exp(log_erlang_b(c, a)))
    return blocking


def erlang_c(servers: Number | float, offered_load: Number | float) -> Number:
    """Return the probability that an arrival finds every server busy and waits.

    Parameters
    ----------
    servers : float or ndarray
        Servers c >= 0 [1]; between whole numbers the continuous extension.
    offered_load : float or ndarray
        a = arrival_rate * service_time_mean [erlang], a >= 0.

    Returns
    -------
    float or ndarray
        P(W > 0), in [0, 1]. Outside the stable region, a >= c, it is 1.

    Raises
    ------
    ValueError
        If `servers` or `offered_load` is negative or not finite.

    Notes
    -----
    M/M/c, first come first served. C = B / (1 - rho (1 - B)), Cooper (1981), ch. 3.

    Examples
    --------
    >>> round(erlang_c(servers=14, offered_load=10.0), 3)
    0.174
    """
    c, a = _checked(servers, offered_load)
    probability: Number = result(np.exp(log_erlang_c(c, a)))
    return probability


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


def _checked(servers: object, offered_load: object) -> tuple[Array, Array]:
    """Broadcast the arguments and refuse what has no meaning."""
    c, a = np.asarray(servers, dtype=float), np.asarray(offered_load, dtype=float)
    if c.shape != a.shape:
        c, a = np.broadcast_arrays(c, a)
    # Not-a-number fails both comparisons.
    if c.size and not (c.min() >= 0 and a.min() >= 0 and c.max() < np.inf and a.max() < np.inf):
        raise ValueError(f"need finite servers, offered_load >= 0, got {servers}, {offered_load}")
    return c, a


def log_erlang_c(c: Array, a: Array) -> Array:
    """Return the logarithm of C(c, a) for arrays c, a >= 0 of one shape; 0 outside the stable region."""
    a = np.minimum(a, c)
    log_blocking = _log_loss_by_poisson(c, a)
    blocking = np.exp(log_blocking)
    # c - a is exact near capacity, where 1 - rho would not be.
    spare = c - a
    stable = spare > 0
    odds = np.where(stable, c, 1.0) / np.where(stable, spare + a * blocking, blocking)
    # Rounding alone may put a probability above 1.
    return np.where(stable, np.minimum(log_blocking + np.log(odds), 0.0), 0.0)


def log_erlang_b(c: Array, a: Array) -> Array:
    """Return the logarithm of B(c, a) for arrays c, a >= 0 of one shape; it does not underflow."""
    overloaded = a > c + 6.0 * np.sqrt(c) + 10.0
    if np.any(overloaded):
        log_blocking = np.empty_like(a)
        log_blocking[overloaded] = _log_loss_by_fraction(c[overloaded], a[overloaded])
        log_blocking[~overloaded] = _log_loss_by_poisson(c[~overloaded], a[~overloaded])
    else:
        log_blocking = _log_loss_by_poisson(c, a)
    # Rounding alone may put a probability above 1.
    return np.minimum(log_blocking, 0.0)


def _log_loss_by_poisson(c: Array, a: Array) -> Array:
    """B = P(N = c) / P(N <= c), N Poisson with mean a; for loads up to a little above capacity."""
    log_blocking: Array = log_poisson(c, a) - np.log(special.gammaincc(c + 1.0, a))
    return log_blocking


def log_poisson(c: Array, a: Array) -> Array:
    """Return log(a^c exp(-a) / Gamma(c + 1)) without the cancellation of large terms. Loader (2000)."""
    large = np.maximum(c, SMALL_SERVERS)
    ratio = np.maximum(a, np.finfo(float).tiny) / large
    excess = ratio - 1.0
    # Far below capacity 1 + excess has lost digits of the ratio, near it the ratio has lost those of excess.
    log_ratio = np.where(ratio < 0.5, np.log(ratio), np.log1p(np.maximum(excess, -0.5)))
    square = 1.0 / (large * large)
    # Stirling's remainder: log Gamma(c + 1) - (c + 1/2) log c + c - log(2 pi) / 2.
    series = 1 / 12 - (1 / 360 - (1 / 1260 - (1 / 1680 - square / 1188) * square) * square) * square
    by_saddle_point = -large * (excess - log_ratio) - series / large - 0.5 * np.log(2.0 * np.pi * large)
    small = np.minimum(c, SMALL_SERVERS)
    directly = special.xlogy(small, a) - a - special.gammaln(small + 1.0)
    return np.where(c < SMALL_SERVERS, directly, by_saddle_point)


def _log_loss_by_fraction(c: Array, a: Array) -> Array:
    """1 / B = a exp(a) a^-(c+1) Gamma(c + 1, a) by Legendre's continued fraction, for a > c + 1.

    The fraction 1/(b0 + k1/(b1 + k2/(b2 + …))) is evaluated forwards (Lentz), all elements at once.
    """
    b = a - c
    d = 1.0 / b
    value = d.copy()
    ratio = np.full_like(b, np.inf)
    for term in range(1, FRACTION_TERMS_MAX):
        numerator = term * (c + 1.0 - term)
        b = b + 2.0
        d = 1.0 / (b + numerator * d)
        ratio = b + numerator / ratio
        step = ratio * d
        value = value * step
        if np.all(np.abs(step - 1.0) < 1e-16 * 4):
            break
    return -np.log(a * value)


def _root(function: Callable[[Array, Array], Array], lower: Array, upper: Array, parameter: Array) -> Array:
    """Where `function(x, parameter)` changes sign between `lower` and `upper`, for each element."""
    found = elementwise.find_root(function, (lower, upper), args=(parameter,))
    root: Array = found.x
    return root
