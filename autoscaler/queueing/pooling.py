"""One pool or several: what merging saves, and whom it hurts.

Merged pools share their spare servers, and one is rarely short when all the others are: spare servers grow
with the square root of the load, so k equal pools need about sqrt(k) times the spare of one instead of k
times.

Merging can hurt where services differ. The merged service varies more than each alone, so that with the same
number of servers short requests may wait behind long ones for longer than they did among themselves. How much
is told per pool: `Pooling.hurt` names the pools that would wait longer.

Waits are those of `ggc`, with its range: the SCV of the merged service must not exceed 10, else ValueError;
then one class of service is so much longer than the others that pools should stay apart.

Source: Smith and Whitt, "Resource sharing for efficiency in traffic systems", Bell System Technical Journal
60 (1981); the moments of a mixture are elementary.
"""

from dataclasses import dataclass

import numpy as np

from autoscaler.queueing import ggc
from autoscaler.queueing.elementwise import Array, require
from autoscaler.queueing.staffing import servers_for_wait, servers_for_wait_each


@dataclass(frozen=True, slots=True)
class Pooling:
    """Separate pools beside one merged pool, for the same wait objective.

    Attributes
    ----------
    separate : tuple of int
        Servers that each pool needs alone [1].
    merged : int
        Servers that one pool for all needs [1].
    service_scv : float
        SCV of the merged service [1].
    wait_separate : tuple of float
        Mean wait in each pool alone, with its own servers [s].
    wait_merged : float
        Mean wait in the merged pool when it keeps all servers of the separate ones [s].
    """

    separate: tuple[int, ...]
    merged: int
    service_scv: float
    wait_separate: tuple[float, ...]
    wait_merged: float

    @property
    def saved(self) -> int:
        """Servers saved by merging [1]; negative if merging costs servers."""
        return sum(self.separate) - self.merged

    @property
    def hurt(self) -> tuple[int, ...]:
        """Indices of the pools whose requests wait longer, on average, merged with all servers kept."""
        return tuple(k for k, wait in enumerate(self.wait_separate) if self.wait_merged > wait)


def merged_service(
    arrival_rates: Array, service_time_means: Array, service_scvs: Array
) -> tuple[float, float]:
    """Return the mean [s] and SCV of the service time of merged streams.

    Parameters
    ----------
    arrival_rates, service_time_means, service_scvs : ndarray, shape (n_pools,)  [1/s], [s], [1]

    Examples
    --------
    >>> mean, scv = merged_service(np.array([9.0, 1.0]), np.array([1.0, 11.0]), np.array([1.0, 1.0]))
    >>> mean, scv
    (2.0, 5.5)
    """
    rates, means = np.asarray(arrival_rates, dtype=float), np.asarray(service_time_means, dtype=float)
    require(rates.sum() > 0 and np.all(rates >= 0), "arrival_rates >= 0, not all 0", arrival_rates)
    share = rates / rates.sum()
    mean = float(share @ means)
    square = float(share @ (means**2 * (1.0 + np.asarray(service_scvs, dtype=float))))
    return mean, square / mean**2 - 1.0


def pooling(
    arrival_rates: Array,
    service_time_means: Array,
    wait_seconds: float,
    wait_quantile: float,
    service_scvs: Array | float = 1.0,
) -> Pooling:
    """Compare k pools, each with its own servers, with one pool for all.

    Parameters
    ----------
    arrival_rates, service_time_means : ndarray, shape (n_pools,)
        > 0 [1/s], [s]. Arrivals are Poisson.
    wait_seconds, wait_quantile : float
        The objective of all, P(W > wait_seconds) <= 1 - wait_quantile [s], [1].
    service_scvs : ndarray, shape (n_pools,), or float
        In [0, 10] [1].

    Raises
    ------
    ValueError
        If an argument is outside its range, or the merged service has an SCV above 10.

    Examples
    --------
    >>> result = pooling(np.full(4, 0.5), np.full(4, 10.0), wait_seconds=2.0, wait_quantile=0.99)
    >>> result.separate, result.merged, result.saved
    ((11, 11, 11, 11), 29, 15)
    """
    rates, means, scvs = np.broadcast_arrays(
        *(np.asarray(values, dtype=float) for values in (arrival_rates, service_time_means, service_scvs))
    )
    require(rates.ndim == 1 and np.all(rates > 0), "arrival_rates > 0, one for each pool", arrival_rates)
    mean, scv = merged_service(rates, means, scvs)
    separate = servers_for_wait_each(rates, means, wait_seconds, wait_quantile, service_scv=scvs)
    total = float(rates.sum())
    return Pooling(
        separate=tuple(int(c) for c in separate),
        merged=servers_for_wait(total, mean, wait_seconds, wait_quantile, service_scv=scv),
        service_scv=scv,
        wait_separate=tuple(ggc.wait_mean(separate, rates, means, service_scv=scvs).tolist()),
        wait_merged=ggc.wait_mean(float(separate.sum()), total, mean, service_scv=scv),
    )
