"""A status as gauges: one table from the names of the metrics to where their numbers stand."""

import math
from collections.abc import Callable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from autoscaler.telemetry.status import PoolStatus, Status

_Read = Callable[[PoolStatus], float]

_PLAIN: tuple[tuple[str, str, _Read], ...] = (
    ("queue_depth", "Requests waiting.", lambda pool: pool.queue_depth),
    ("oldest_wait_seconds", "How long the first in the queue has waited.", lambda pool: pool.oldest_wait),
    (
        "occupancy_ratio",
        "Busy slots / slots over the last interval.",
        lambda pool: pool.occupancy.last_interval,
    ),
    (
        "slots_per_replica",
        "Requests that a typical replica serves at a time; found out where slots_per_replica is auto.",
        lambda pool: pool.slots.per_replica,
    ),
    ("arrival_rate", "Requests per second at the door, lately.", lambda pool: pool.arrival_rate),
    ("offered_load_erlangs", "Arrival rate x mean service time.", lambda pool: pool.offered_load),
    ("desired_replicas", "Replicas wanted, ready and starting.", lambda pool: pool.replicas.desired),
    (
        "acts",
        "1 if decisions are carried out from here; 0 if nobody does, or another controller.",
        lambda pool: math.nan if pool.acts is None else pool.acts,
    ),
    (
        "wanted_replicas",
        "Replicas that would be desired if all that is ordered came, and had an effect.",
        lambda pool: pool.orders.wanted,
    ),
    (
        "supply_probability_ratio",
        "Probability that an ordered replica comes in its time, by those of late.",
        lambda pool: pool.orders.probability,
    ),
    (
        "supply_delay_seconds",
        "From an order to its replica, the longest of late.",
        lambda pool: pool.orders.delay,
    ),
    (
        "ledger_difference",
        "Slots without a request and calls without a slot, when last compared; stays 0.",
        lambda pool: pool.ledger_difference,
    ),
    (
        "objective_wait_seconds",
        "The wait that a request may have by the objective.",
        lambda pool: pool.objective.wait_seconds,
    ),
    (
        "objective_quantile_ratio",
        "The fraction of requests of which the objective asks that.",
        lambda pool: pool.objective.wait_quantile,
    ),
    (
        "objective_met_ratio",
        "Fraction of recent requests that started within the objective's wait.",
        lambda pool: pool.waits.met,
    ),
)

_LABELLED: tuple[tuple[str, str, str, dict[str, _Read]], ...] = (
    (
        "slots",
        "Slots of ready replicas.",
        "state",
        {"busy": lambda pool: pool.slots.busy, "free": lambda pool: pool.slots.free},
    ),
    (
        "replicas",
        "Replicas.",
        "state",
        {
            "starting": lambda pool: pool.replicas.starting,
            "ready": lambda pool: pool.replicas.ready,
            "draining": lambda pool: pool.replicas.draining,
            "asleep": lambda pool: pool.replicas.asleep,
            "ejected": lambda pool: pool.replicas.ejected,
            "late": lambda pool: pool.orders.late,
        },
    ),
    (
        "scaling_obstacle",
        "1 while something stands in the way of what is wanted.",
        "kind",
        {
            "supply": lambda pool: float(pool.orders.is_short),
            "no_effect": lambda pool: float(pool.orders.has_no_effect),
            "edited_elsewhere": lambda pool: float(pool.orders.asked_elsewhere is not None),
        },
    ),
    (
        "forecast_arrival_rate",
        "Requests per second predicted one lead time ahead.",
        "quantile",
        {
            "mean": lambda pool: pool.forecast.mean,
            "0.1": lambda pool: pool.forecast.p10,
            "0.9": lambda pool: pool.forecast.p90,
        },
    ),
    (
        "cold_start_seconds",
        "From the decision to a ready replica, as measured.",
        "statistic",
        {"mean": lambda pool: pool.cold_start_mean, "p90": lambda pool: pool.cold_start_p90},
    ),
)


def gauges(status: Status) -> Iterator[Metric]:
    """Yield every metric that a status holds; what is not known has no sample."""
    for name, text, read in _PLAIN:
        family = GaugeMetricFamily(f"autoscaler_{name}", text, labels=["pool"])
        for pool in status.pools:
            _add(family, [pool.name], read(pool))
        yield family
    for name, text, label, reads in _LABELLED:
        family = GaugeMetricFamily(f"autoscaler_{name}", text, labels=["pool", label])
        for pool in status.pools:
            for value, read in reads.items():
                _add(family, [pool.name, value], read(pool))
        yield family
    leaked = CounterMetricFamily(
        "autoscaler_slots_leaked", "Slots never given back; stays 0.", labels=["pool"]
    )
    for pool in status.pools:
        leaked.add_metric([pool.name], pool.slots_leaked)
    yield leaked
    lag = GaugeMetricFamily(
        "autoscaler_event_loop_lag_seconds", "The longest recent stall of the event loop."
    )
    _add(lag, [], status.event_loop_lag)
    yield lag


def _add(family: GaugeMetricFamily, labels: list[str], value: float) -> None:
    if not math.isnan(value):
        family.add_metric(labels, value)
