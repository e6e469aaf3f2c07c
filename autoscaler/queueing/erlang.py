"""Erlang's loss and delay formulas.

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

from typing import Any

import numpy as np
from scipy import special

from autoscaler.queueing import erlang_number
from autoscaler.queueing.elementwise import Array, Number, exp, log, result, smaller, value
from autoscaler.queueing.erlang_number import FRACTION_TERMS_MAX, SMALL_SERVERS


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
    blocking: Number = result(exp(log_erlang_b(*_checked(servers, offered_load))))
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
    probability: Number = result(exp(log_erlang_c(*_checked(servers, offered_load))))
    return probability


def log_erlang_b(c: Any, a: Any) -> Any:
    """Return the logarithm of B(c, a), for floats or arrays of one shape >= 0; it does not underflow."""
    if isinstance(c, float):
        return erlang_number.log_erlang_b(c, a)
    overloaded = a > c + 6.0 * np.sqrt(c) + 10.0
    if np.any(overloaded):
        log_blocking = np.empty_like(a)
        log_blocking[overloaded] = _log_loss_by_fraction(c[overloaded], a[overloaded])
        log_blocking[~overloaded] = _log_loss_by_poisson(c[~overloaded], a[~overloaded])
    else:
        log_blocking = _log_loss_by_poisson(c, a)
    # Rounding alone may put a probability above 1.
    return np.minimum(log_blocking, 0.0)


def log_erlang_c(c: Any, a: Any) -> Any:
    """Return the logarithm of C(c, a), for floats or arrays >= 0; 0 outside the stable region."""
    a = smaller(a, c)
    return _log_delay(_log_loss_by_poisson(c, a), c, a)


def log_erlang_c_and_with_one_fewer(c: Any, a: Any) -> tuple[Any, Any]:
    """Return the logarithms of C(c, a) and C(c - 1, a), for c >= 1, at hardly more than the cost of one."""
    a = smaller(a, c)
    log_fewer = _log_loss_by_poisson(c - 1.0, a)
    # The recursion B(c) = a B(c - 1) / (c + a B(c - 1)), in logarithms.
    log_here = log_fewer + log(a / c) - log(1.0 + a / c * exp(log_fewer))
    return _log_delay(log_here, c, a), _log_delay(log_fewer, c - 1.0, a)


def _checked(servers: Any, offered_load: Any) -> tuple[Any, Any]:
    """Return floats, or arrays of one shape, and refuse what has no meaning."""
    c, a = value(servers), value(offered_load)
    if isinstance(c, float) and isinstance(a, float):
        meant = 0 <= c < np.inf and 0 <= a < np.inf
    else:
        c, a = np.broadcast_arrays(c, a)
        # Not-a-number fails both comparisons.
        meant = not c.size or bool(c.min() >= 0 and a.min() >= 0 and c.max() < np.inf and a.max() < np.inf)
    if not meant:
        raise ValueError(f"need finite servers, offered_load >= 0, got {servers}, {offered_load}")
    return c, a


def _log_delay(log_blocking: Any, c: Any, a: Any) -> Any:
    """C = B / (1 - rho (1 - B)), in logarithms."""
    if isinstance(log_blocking, float):
        return erlang_number.log_delay(log_blocking, c, a)
    # c - a is exact near capacity, where 1 - rho would not be.
    spare, blocking = c - a, np.exp(log_blocking)
    stable = spare > 0
    odds = np.where(stable, c, 1.0) / np.where(stable, spare + a * blocking, blocking)
    # Rounding alone may put a probability above 1.
    return np.where(stable, np.minimum(log_blocking + np.log(odds), 0.0), 0.0)


def _log_loss_by_poisson(c: Any, a: Any) -> Any:
    """B = P(N = c) / P(N <= c), N Poisson with mean a; for loads up to a little above capacity."""
    if isinstance(c, float) and isinstance(a, float):
        return erlang_number.log_loss_by_poisson(c, a)
    return _log_poisson(c, a) - np.log(special.gammaincc(c + 1.0, a))


def _log_poisson(c: Array | float, a: Array | float) -> Array:
    """Return log(a^c exp(-a) / Gamma(c + 1)) without the cancellation of large terms. Loader (2000)."""
    large = np.maximum(c, SMALL_SERVERS)
    ratio = np.maximum(a, np.finfo(float).tiny) / large
    excess = ratio - 1.0
    # Far below capacity 1 + excess has lost digits of the ratio, near it the ratio has lost those of excess.
    log_ratio = np.where(ratio < 0.5, np.log(ratio), np.log1p(np.maximum(excess, -0.5)))
    square = 1.0 / (large * large)
    # Stirling's remainder: log Gamma(c + 1) - (c + 1/2) log c + c - log(2 pi) / 2.
    series = 1 / 12 - (1 / 360 - (1 / 1260 - (1 / 1680 - square / 1188) * square) * square) * square
    by_saddle_point: Array = (
        -large * (excess - log_ratio) - series / large - 0.5 * np.log(2.0 * np.pi * large)
    )
    if np.min(c, initial=np.inf) >= SMALL_SERVERS:
        return by_saddle_point
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
