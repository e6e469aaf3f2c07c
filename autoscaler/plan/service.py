"""How replicas serve, each way with its queueing model: replicas and a rate in, a queue at rest out.

one_by_one    G/G/c by two moments of arrivals and service; with impatient clients M/M/c+G
together      in batches, M/G^[b]/c with s(b) = alpha + beta b, Poisson arrivals;
              continuous, replicas that advance all their requests a token a step of t(b) = alpha + beta b

Utilization is what the band is about. One by one it is a / c, busy slots / slots. With continuous batching it
is busy slots / slots too. In batches it is the share of what full batches could carry: an idle server starts
whatever is there, so servers look busy long before they are full.

A wait is that for a slot. Clients who give up count as requests that missed the objective.
"""

from collections.abc import Mapping
from typing import Protocol


class Queue(Protocol):
    """A queue at rest."""

    @property
    def utilization(self) -> float:
        """See the top of the file [1]."""

    @property
    def probability_of_wait(self) -> float:
        """P(W > 0) [1]."""

    @property
    def wait_mean(self) -> float:
        """E[W] [s]; infinite if more comes than can be served."""

    @property
    def more(self) -> Mapping[str, float]:
        """Figures that only this kind of service has, by name."""

    def wait_tail(self, wait_seconds: float) -> float:
        """Fraction of the requests that wait longer, or give up [1]."""

    def wait_quantile(self, quantile: float) -> float:
        """The least wait [s] that no more than 1 - quantile of the requests exceed."""


class Service(Protocol):
    """How replicas serve."""

    @property
    def slots_per_replica(self) -> int:
        """[1]."""

    @property
    def capacity(self) -> float:
        """Requests that a replica can finish [1/s]."""

    @property
    def overload_is_stable(self) -> bool:
        """Whether more may come than can be served, since clients give up."""

    def queue(self, replicas: int, arrival_rate: float) -> Queue:
        """The queue of so many replicas."""
