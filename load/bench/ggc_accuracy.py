"""How far the formulas for G/G/c are from simulation: `python -m load.bench.ggc_accuracy`, ten minutes.

Prints, as the Markdown table of docs/queueing.md, by what factor each formula misses the simulated
probability of wait, mean wait and 99 % wait: in the middle of all cases, and in nine of ten.
"""

import itertools
import sys
from collections.abc import Callable

import numpy as np
from scipy import special

from autoscaler.queueing import ggc
from autoscaler.queueing.erlang import erlang_c
from load.bench.queue_simulation import (
    Floats,
    Law,
    gamma_law,
    hyperexponential_law,
    lognormal_law,
    simulate_waits,
)

SERVERS = (1, 5, 20, 80)
UTILIZATIONS = (0.5, 0.65, 0.8, 0.9)
SCVS = (0.02, 0.25, 1.0, 4.0, 10.0)
LAWS: dict[str, tuple[Callable[[float, float], Law], Callable[[float, float], Law]]] = {
    "gamma arrivals, gamma service": (gamma_law, gamma_law),
    "hyperexponential (gamma below 1) arrivals, lognormal service": (hyperexponential_law, lognormal_law),
}
"""Two families with the same two moments: their difference is what two moments cannot know."""

RARE = 0.02
"""Cases in which fewer wait are left out: nobody sizes by them, and none of the formulas is good there."""

Estimate = tuple[Floats, Floats, Floats]
"""P(W > 0), E[W], and the 99 % wait."""


def allen_cunneen(c: Floats, rho: Floats, ca2: Floats, cs2: Floats) -> Estimate:
    delay = np.asarray(erlang_c(c, c * rho))
    return _exponential(delay, delay * _heavy_traffic(c, rho, ca2, cs2))


def kimura(c: Floats, rho: Floats, ca2: Floats, cs2: Floats) -> Estimate:
    """Kimura, Management Science 32 (1986): a mean of D/M/c, M/D/c and M/M/c; not-a-number if it has none."""
    delay = np.asarray(erlang_c(c, c * rho))
    gamma = _cosmetatos(c, rho)
    constant_service = 0.5 * (1.0 + gamma)
    constant_arrivals = 0.5 * (1.0 - 4.0 * gamma) * np.exp(-2.0 * (1.0 - rho) / (3.0 * rho))
    mixture = (1.0 - ca2) / constant_arrivals + (1.0 - cs2) / constant_service + 2.0 * (ca2 + cs2 - 1.0)
    factor = np.where(mixture > 0, 2.0 / mixture, np.nan)
    return _exponential(delay, delay * factor * _heavy_traffic(c, rho, ca2, cs2))


def whitt(c: Floats, rho: Floats, ca2: Floats, cs2: Floats) -> Estimate:
    """Whitt, Production and Operations Management 2 (1993), equations 2.24 and 3.10."""
    delay = np.asarray(erlang_c(c, c * rho))
    mean = delay * _whitt_factor(c, rho, ca2, cs2) * _heavy_traffic(c, rho, ca2, cs2)
    return _exponential(_whitt_delay(delay, c, rho, ca2, cs2), mean)


def ours(c: Floats, rho: Floats, ca2: Floats, cs2: Floats) -> Estimate:
    return (
        np.asarray(ggc.probability_of_wait(c, c * rho, 1.0, arrival_scv=ca2, service_scv=cs2)),
        np.asarray(ggc.wait_mean(c, c * rho, 1.0, arrival_scv=ca2, service_scv=cs2)),
        np.asarray(ggc.wait_quantile(c, c * rho, 1.0, 0.99, arrival_scv=ca2, service_scv=cs2)),
    )


METHODS = {"Allen–Cunneen": allen_cunneen, "Kimura": kimura, "Whitt 1993": whitt, "`ggc`": ours}


def _exponential(delay: Floats, mean: Floats) -> Estimate:
    """The wait of those who wait as exponential with the mean that P(W > 0) and E[W] leave."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return delay, mean, mean / delay * np.log(np.maximum(delay / 0.01, 1.0))


def _heavy_traffic(c: Floats, rho: Floats, ca2: Floats, cs2: Floats) -> Floats:
    return (ca2 + cs2) / 2.0 / (c * (1.0 - rho))


def _cosmetatos(c: Floats, rho: Floats) -> Floats:
    factor: Floats = np.minimum(
        0.24, (1.0 - rho) * (c - 1.0) * (np.sqrt(4.0 + 5.0 * c) - 2.0) / (16.0 * c * rho)
    )
    return factor


def _whitt_factor(c: Floats, rho: Floats, ca2: Floats, cs2: Floats) -> Floats:
    gamma = _cosmetatos(c, rho)
    phi1, phi3 = 1.0 + gamma, (1.0 - 4.0 * gamma) * np.exp(-2.0 * (1.0 - rho) / (3.0 * rho))
    scv = (ca2 + cs2) / 2.0
    psi = np.where(scv >= 1.0, 1.0, np.minimum(1.0, (phi1 + phi3) / 2.0) ** (2.0 * (1.0 - scv)))
    with np.errstate(divide="ignore", invalid="ignore"):
        burstier = (4.0 * (ca2 - cs2) * phi1 + cs2 * psi) / (4.0 * ca2 - 3.0 * cs2)
    return np.where(
        ca2 >= cs2, burstier, ((cs2 - ca2) * phi3 + (cs2 + 3.0 * ca2) * psi) / (2.0 * (ca2 + cs2))
    )


def _whitt_delay(delay: Floats, c: Floats, rho: Floats, ca2: Floats, cs2: Floats) -> Floats:
    def beyond(x: Floats) -> Floats:
        return np.asarray(special.ndtr(-x))

    spare, z = (1.0 - rho) * np.sqrt(c), (ca2 + cs2) / (1.0 + cs2)
    by_service = np.minimum(1.0, delay * beyond(spare / z) / beyond(spare))
    by_arrivals = np.minimum(1.0, delay * beyond(2.0 * spare / (1.0 + ca2)) / beyond(spare))
    gamma = (c - c * rho - 0.5) / np.sqrt(c * rho * z)
    pi1 = rho**2 * by_service + (1.0 - rho**2) * by_arrivals
    pi2 = ca2 * pi1 + (1.0 - ca2) * beyond(gamma)
    share = 2.0 * (1.0 - ca2) * (gamma - 0.5)
    first = (c <= 6) | (gamma <= 0.5) | (ca2 >= 1.0)
    pi = np.where(first, pi1, np.where(gamma >= 1.0, pi2, share * pi2 + (1.0 - share) * pi1))
    return np.minimum(1.0, pi)


def simulated(arrivals: Callable[[float, float], Law], service: Callable[[float, float], Law]) -> Floats:
    """One row a case: c, rho, ca2, cs2, P(W > 0), E[W], 99 % wait; mean service 1."""
    rows = []
    for c, rho, ca2, cs2 in itertools.product(SERVERS, UTILIZATIONS, SCVS, SCVS):
        memory = (ca2 + cs2) / 2.0 / (1.0 - rho) ** 2
        waits = simulate_waits(
            c,
            arrivals(1.0 / (c * rho), ca2),
            service(1.0, cs2),
            customers=max(5000, int(20 * memory)),
            warm_up=int(8 * memory + 20 * c + 200),
            copies=400,
            rng=np.random.default_rng([c, round(100 * rho), round(100 * ca2), round(100 * cs2)]),
        )
        rows.append([c, rho, ca2, cs2, float(np.mean(waits > 1e-12)), waits.mean(), np.quantile(waits, 0.99)])
        print(
            f"\r{len(rows)} of {len(SERVERS) * len(UTILIZATIONS) * len(SCVS) ** 2}", end="", file=sys.stderr
        )
    print(file=sys.stderr)
    return np.array(rows)


def table(cases: Floats) -> str:
    """Factors by which each method misses, as Markdown."""
    c, rho, ca2, cs2, delay, mean, quantile = cases[cases[:, 4] >= RARE].T
    regions = {
        "all": ca2 > 0,
        "Poisson arrivals": ca2 == 1,
        "regular arrivals, service ≤ 1": (ca2 < 1) & (cs2 <= 1),
        "regular arrivals, service > 1": (ca2 < 1) & (cs2 > 1),
        "bursty arrivals, service ≤ 1": (ca2 > 1) & (cs2 <= 1),
        "bursty arrivals, service > 1": (ca2 > 1) & (cs2 > 1),
    }
    lines = ["| SCVs | quantity | " + " | ".join(METHODS) + " |", "|---" * (2 + len(METHODS)) + "|"]
    estimates = [method(c, rho, ca2, cs2) for method in METHODS.values()]
    for region, here in regions.items():
        for k, (quantity, truth) in enumerate({"P(W>0)": delay, "mean": mean, "p99": quantile}.items()):
            counted = here & (truth > 0.01 / c)
            cells = [_factors(estimate[k][counted], truth[counted]) for estimate in estimates]
            lines.append(f"| {region} | {quantity} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _factors(estimate: Floats, truth: Floats) -> str:
    valid = np.isfinite(estimate)
    missed = np.abs(np.log(np.maximum(estimate[valid], 1e-12) / truth[valid]))
    middle, nine = np.exp(np.quantile(missed, [0.5, 0.9]))
    note = "" if valid.all() else f" (none for {np.mean(~valid):.0%})"
    return f"{middle:.2f} · {nine:.2f}{note}" if nine < 100 else f"{middle:.2f} · > 100{note}"


if __name__ == "__main__":
    for name, laws in LAWS.items():
        print(f"\n{name}\n\n{table(simulated(*laws))}", flush=True)
