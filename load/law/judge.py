"""What theory says of one case, what was measured, and whether they agree: pure.

Of the measured mean wait, a confidence interval by batch means: the run is cut into a few long batches,
whose means are nearly independent although the waits of neighbours are not. Theory is asked at the arrival
rate that came and the slot time that was: the law of the service, moved by the constant that timers and the
proxy add to it. Two answers: the product's own formula for G/G/c, and the simulated queue, which is exact but
for noise.
"""

from dataclasses import dataclass

import numpy as np
from scipy import stats

from autoscaler.queueing import ggc
from load.bench.queue_simulation import Law, gamma_law, lognormal_law, simulate_waits
from load.law.recursion import Fit, Floats, fit_overhead
from load.law.wire import Seen

WARM_UP = 0.05
"""The first requests meet an empty queue and are not counted: this fraction of them."""

BATCHES = 20
CONFIDENCE = 0.99
"""Of nine true statements one in eleven runs finds one false; at 95 % one in three would."""

OVERHEAD_MAX = 0.002
"""The slot time that each request may cost beyond its service [s]."""

SIMULATED, COPIES = 10_000, 400


@dataclass(frozen=True)
class Case:
    """One queue: Poisson arrivals, a law of service, c servers, a utilization."""

    name: str
    service_scv: float
    servers: int
    service: float
    """Mean of the law [s]."""
    utilization: float

    def law(self, excess: float = 0.0) -> Law:
        """Return the law of the service times, each longer by `excess` [s]."""
        lognormal = self.service_scv > 1
        law = (lognormal_law if lognormal else gamma_law)(self.service, self.service_scv)
        return lambda rng, shape: law(rng, shape) + excess

    def arrival_rate(self, excess: float) -> float:
        """Return the rate that makes the utilization, if each service takes `excess` [s] longer [1/s]."""
        return self.utilization * self.servers / (self.service + excess)


@dataclass(frozen=True)
class Verdict:
    """One case, judged. Times in seconds."""

    case: Case
    requests: int
    utilization: float
    """As it really was [1]."""
    wait_measured: float
    half_width: float
    """Of the confidence interval of `wait_measured`."""
    wait_formula: float
    """By `autoscaler.queueing.ggc`."""
    wait_model: float
    """Of the simulated queue."""
    wait_pathwise: float
    """Of the recursion, fed with what really happened."""
    overhead: float
    transit: float
    off: float
    """Median absolute difference between a measured wait and the recursion's, of those who wait."""
    excess: float
    """By so much a slot was taken longer than the law said: late timers, and what overhead may be."""
    measured: Floats
    """Waits, sorted; shape (n,)."""
    model: Floats
    """Waits of the simulated queue, sorted; shape (n,)."""

    @property
    def law_holds(self) -> bool:
        """Whether the simulated queue's mean lies within the interval of the measured, if that says much."""
        says_much = self.half_width < self.wait_measured
        return says_much and abs(self.wait_measured - self.wait_model) <= self.half_width

    @property
    def path_holds(self) -> bool:
        """Whether the overhead is small enough, and the recursion then gives the waits.

        By the median, which a stall of the machine does not move; a queue of another kind moves it.
        """
        near = self.off <= 0.1 * self.wait_measured + 0.0005
        return self.overhead <= OVERHEAD_MAX and near


def judge(case: Case, seen: Seen, meant: Floats, rng: np.random.Generator) -> Verdict:
    """Compare what was seen with what theory says.

    Parameters
    ----------
    case : Case
        What was asked for.
    seen : Seen
        What happened, in order of arrival.
    meant : ndarray, shape (n,)  [s]
        Service times as they were asked for.
    rng : Generator
        For the simulated queue.
    """
    services = seen.ended - seen.begun
    fit = fit_overhead(seen.sent, seen.begun, services, case.servers)
    excess = float(np.mean(services) - np.mean(meant)) + min(fit.overhead, OVERHEAD_MAX)
    rate = (len(seen.sent) - 1) / float(seen.sent[-1] - seen.sent[0])
    passed = seen.begun - seen.sent
    waits = counted(passed - float(np.mean(passed[fit.waits == 0])))
    model = _simulated(case, rate, excess, rng)
    mean = case.service + excess
    return Verdict(
        case=case,
        requests=len(seen.sent),
        utilization=rate * mean / case.servers,
        wait_measured=float(np.mean(waits)),
        half_width=half_width(waits),
        wait_formula=float(
            ggc.wait_mean(case.servers, rate, mean, service_scv=case.service_scv * (case.service / mean) ** 2)
        ),
        wait_model=float(np.mean(model)),
        wait_pathwise=float(np.mean(counted(fit.waits))),
        overhead=fit.overhead,
        transit=fit.transit,
        off=_off(fit),
        excess=excess,
        measured=np.sort(waits),
        model=np.sort(model),
    )


def counted(waits: Floats) -> Floats:
    """Return the waits without those of the warm-up."""
    return waits[int(WARM_UP * len(waits)) :]


def half_width(waits: Floats) -> float:
    """Return half the width of the confidence interval of the mean, by batch means [s]."""
    length = len(waits) // BATCHES
    means = waits[: BATCHES * length].reshape(BATCHES, length).mean(axis=1)
    quantile = stats.t.ppf((1 + CONFIDENCE) / 2, BATCHES - 1)
    return float(quantile * means.std(ddof=1) / np.sqrt(BATCHES))


def _off(fit: Fit) -> float:
    waiting = fit.differences[fit.waits > 0]
    return float(np.median(np.abs(waiting))) if waiting.size else 0.0


def _simulated(case: Case, rate: float, excess: float, rng: np.random.Generator) -> Floats:
    return simulate_waits(
        case.servers,
        gamma_law(1.0 / rate, 1.0),
        case.law(excess),
        customers=SIMULATED,
        warm_up=SIMULATED // 2,
        copies=COPIES,
        rng=rng,
    ).ravel()
