"""From demand to servers: the wait objective and the utilization band, solved together.

The *wait* asks for the least servers c with E[P(W > t)] <= 1 - q, where the expectation runs over the
forecast's distribution: forecast error and the noise of single arrivals are paid for once, together.
The *band* asks a / high <= c <= a / low. A *backlog* is work once, not demand: it asks for enough to be
gone within its catch-up time, and no more than that. The largest wins, and is named.
"""

from dataclasses import dataclass
from math import ceil, floor

import numpy as np
from numpy.typing import NDArray

from autoscaler.domain import Binding, Objective
from autoscaler.queueing.peakedness import SCV_MAX
from autoscaler.queueing.staffing import servers_for_wait_mixture
from autoscaler.scaling.estimate import Estimate

_AIM = 0.7
"""Where in the band to aim when the fleet moves anyway: its top edge is left at the first noise."""
_TOP, _BOTTOM = 0.95, 0.35
"""Where in the band the fleet is moved: seldom enough that the noise of a forecast does not move it."""
_TINY = 1e-9


@dataclass(frozen=True, slots=True)
class RateLaw:
    """A distribution of the arrival rate at one time, on finitely many nodes.

    Attributes
    ----------
    predicted : float
        What it is sized for in the mean [1/s]: the band asks for this one. The mean over the nodes may lie
        higher, since rare surges do.
    rates, weights : ndarray, shape (n,)
        Nodes [1/s] and their probabilities [1].
    """

    predicted: float
    rates: NDArray[np.float64]
    weights: NDArray[np.float64]

    def quantile(self, probability: float) -> float:
        """Least node whose cumulated weight reaches `probability` [1/s]."""
        order = np.argsort(self.rates)
        reached = np.searchsorted(np.cumsum(self.weights[order]), probability - _TINY)
        return float(self.rates[order][min(int(reached), len(order) - 1)])


@dataclass(frozen=True, slots=True)
class Need:
    """Servers that one demand asks for.

    Attributes
    ----------
    wait, band, band_aim, band_most, backlog : int
        For the wait objective; for the band's top; for the aim inside it; the most before utilization
        falls out of the band below; to work off a backlog [servers].
    """

    wait: int
    band: int
    band_aim: int
    band_most: int
    backlog: int = 0

    @property
    def least(self) -> int:
        """What must not be undercut [servers]."""
        return max(self.wait, self.band, self.backlog)

    @property
    def aim(self) -> int:
        """Where to go when moving [servers]."""
        return max(self.wait, self.band_aim, self.backlog)

    @property
    def most(self) -> int:
        """The most that is not too much [servers]. Below about 8 the wait may exclude the band."""
        return max(self.band_most, self.wait, self.backlog)

    @property
    def binding(self) -> Binding:
        """The constraint that asks for the most."""
        if self.aim == 0:
            return Binding.NONE
        if self.backlog == self.aim:
            return Binding.BACKLOG
        return Binding.WAIT if self.wait == self.aim else Binding.BAND


def need(law: RateLaw, estimate: Estimate, objective: Objective, backlog_servers: int = 0) -> Need:
    """Size for one demand.

    Parameters
    ----------
    law : RateLaw
        The arrival rate as a distribution.
    estimate : Estimate
        With a known service time.
    objective : Objective
        Wait and band.
    backlog_servers : int
        Servers that a backlog asks for.

    Raises
    ------
    ValueError
        If no service time is known.
    """
    if not estimate.service_known:
        raise ValueError("cannot size without a service time")
    offered_load = law.predicted * estimate.service_time_mean
    if offered_load <= _TINY:
        return Need(0, 0, 0, 0, backlog_servers)
    least, aim, most = _band(offered_load, objective)
    return Need(
        wait=servers_for_wait_mixture(
            law.rates,
            law.weights,
            estimate.service_time_mean,
            objective.wait_seconds,
            objective.wait_quantile,
            arrival_scv=min(estimate.arrival_scv, SCV_MAX),
            service_scv=min(estimate.service_scv, SCV_MAX),  # beyond, the approximation was not checked
        ),
        band=least,
        band_aim=aim,
        band_most=most,
        backlog=backlog_servers,
    )


def _band(offered_load: float, objective: Objective) -> tuple[int, int, int]:
    """Return the fewest servers that the band allows, the best number, and the most.

    A large fleet moves before an edge is reached. A small one may keep one server more or less than the best
    number as long as it is in the band: else it would flap between two sizes. Without an upper edge the band
    asks for no more than that the work can be done.
    """
    low, high = objective.utilization_low, objective.utilization_high
    if high == 1:
        enough = floor(offered_load + _TINY) + 1
        return enough, enough, enough
    top, middle, bottom = (low + share * (high - low) for share in (_TOP, _AIM, _BOTTOM))
    aim = ceil(offered_load / middle - _TINY)
    least = max(ceil(offered_load / high - _TINY), min(ceil(offered_load / top - _TINY), aim - 1))
    most = max(aim, floor(offered_load / bottom + _TINY), min(floor(offered_load / low + _TINY), aim + 1))
    return least, aim, most


def servers_for_backlog(backlog: float, offered_load: float, estimate: Estimate, catch_up_time: float) -> int:
    """Servers that keep up with `offered_load` and clear `backlog` requests within `catch_up_time` [s]."""
    if backlog <= 0 or not estimate.service_known:
        return 0
    return ceil(offered_load + backlog * estimate.service_time_mean / catch_up_time - _TINY)


def replicas_for(servers: int, slots_per_replica: int) -> int:
    """Replicas that hold at least `servers` slots."""
    return -(-servers // slots_per_replica)
