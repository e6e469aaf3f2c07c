"""Two pools of which one stands in for the other while that one is short: what joins their two paths.

On the request path the drives do it, as long as they are told to. On the control path the decisions about the
first pool say whether it is short, and what of its demand the second one is to be sized for.
"""

from collections.abc import Iterator, Sequence

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from autoscaler.domain import Decision, Fleet, Observation
from autoscaler.proxy.drive import PoolDrive
from autoscaler.scaling.substitution import Substitution


class StandingIn:
    """Lets one pool stand in for another.

    Parameters
    ----------
    drive, substitute : PoolDrive
        Of the pool that may be short, and of the one that then serves what it cannot.
    """

    def __init__(self, drive: PoolDrive, substitute: PoolDrive) -> None:
        self.pool, self.substitute = drive.name, substitute.name
        self._drive, self._by = drive, substitute
        self._substitution = Substitution()
        drive.substitute_by(substitute)

    @property
    def is_needed(self) -> bool:
        """Whether the first pool is short; it may be and need nothing at the moment."""
        return self._substitution.is_short

    @property
    def share(self) -> float:
        """Of the first pool's demand, what the second one is to serve [1]."""
        return self._substitution.share

    @property
    def arrival_rate(self) -> float:
        """The same, in arrivals [1/s]."""
        return self._substitution.arrival_rate

    @property
    def handed_over(self) -> int:
        """Requests that have gone over, since the start [requests]."""
        return self._drive.handed_over

    @property
    def serves(self) -> bool:
        """Whether the second pool serves, at this moment, what the first one cannot."""
        return self.is_needed and bool(self._by.ready_replicas())

    @property
    def in_flight(self) -> int:
        """Requests of the first pool that are with the second now [requests]."""
        return self._by.in_flight_for(self.pool)

    def follow(self, observation: Observation, fleet: Fleet, decision: Decision, now: float) -> None:
        """Take in a decision about the first pool, and what it was made from."""
        self._substitution.decided(decision, fleet, now)
        self._substitution.observed(observation)
        self._drive.give_away(wanted=self.is_needed)

    def demand(self, interval: float, wall_time: float, *, with_services: bool) -> Observation | None:
        """Return what the second pool shall be sized for beside its own demand; None if there is nothing."""
        return self._substitution.demand(interval, wall_time, with_services=with_services)


def substitution_metrics(pairs: Sequence[StandingIn]) -> Iterator[Metric]:
    """Yield what went over, and the share of the demand that is to."""
    requests = CounterMetricFamily(
        "autoscaler_substituted_requests",
        "Requests that went to the pool that stands in for theirs.",
        labels=["pool", "by"],
    )
    share = GaugeMetricFamily(
        "autoscaler_substituted_demand_ratio",
        "Share of a pool's demand that another is to serve, because what is ordered does not come.",
        labels=["pool", "by"],
    )
    for each in pairs:
        requests.add_metric([each.pool, each.substitute], each.handed_over)
        share.add_metric([each.pool, each.substitute], each.share)
    yield requests
    yield share
