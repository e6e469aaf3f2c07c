"""Erlang's formulas for one number of servers and one load, in plain arithmetic.

The formulas of `erlang`, which a search for one pool asks a few times: an array of one element would take ten
times as long, nearly all of it to set up.
"""

import math
import sys

from scipy import special

SMALL_SERVERS = 16.0
"""Below so many servers the Poisson probability is taken directly, above by its saddle-point form."""

FRACTION_TERMS_MAX = 500
"""Bound on the terms of the continued fraction; where it is used, a few dozen are enough."""

_TWO_PI = 2.0 * math.pi


def log_erlang_b(c: float, a: float) -> float:
    """Return the logarithm of B(c, a), for c, a >= 0; it does not underflow."""
    if a > c + 6.0 * math.sqrt(c) + 10.0:
        return min(_log_loss_by_fraction(c, a), 0.0)
    return min(log_loss_by_poisson(c, a), 0.0)


def log_delay(log_blocking: float, c: float, a: float) -> float:
    """Return the logarithm of C(c, a) from that of B(c, a); 0 outside the stable region."""
    # c - a is exact near capacity, where 1 - rho would not be.
    spare = c - a
    if spare <= 0.0:
        return 0.0
    return min(log_blocking + math.log(c / (spare + a * math.exp(log_blocking))), 0.0)


def log_loss_by_poisson(c: float, a: float) -> float:
    """B = P(N = c) / P(N <= c), N Poisson with mean a; for loads up to a little above capacity."""
    return _log_poisson(c, a) - math.log(special.gammaincc(c + 1.0, a))


def _log_poisson(c: float, a: float) -> float:
    """log(a^c exp(-a) / Gamma(c + 1)), without the cancellation of large terms."""
    if a == 0.0:
        return 0.0 if c == 0.0 else -math.inf
    if c < SMALL_SERVERS:
        return c * math.log(a) - a - math.lgamma(c + 1.0)
    ratio = max(a, sys.float_info.min) / c
    excess = ratio - 1.0
    log_ratio = math.log(ratio) if ratio < 0.5 else math.log1p(excess)
    square = 1.0 / (c * c)
    series = 1 / 12 - (1 / 360 - (1 / 1260 - (1 / 1680 - square / 1188) * square) * square) * square
    return -c * (excess - log_ratio) - series / c - 0.5 * math.log(_TWO_PI * c)


def _log_loss_by_fraction(c: float, a: float) -> float:
    """Legendre's continued fraction, forwards, for a > c + 1."""
    b = a - c
    value = d = 1.0 / b
    ratio = math.inf
    for term in range(1, FRACTION_TERMS_MAX):
        numerator = term * (c + 1.0 - term)
        b += 2.0
        d = 1.0 / (b + numerator * d)
        ratio = b + numerator / ratio
        step = ratio * d
        value *= step
        if abs(step - 1.0) < 4e-16:
            break
    return -math.log(a * value)
