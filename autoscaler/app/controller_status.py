"""What a controller says of itself: put together from its control loops, and from what the doors told."""

from collections.abc import Iterator, Sequence
from math import nan

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from autoscaler.app.status import (
    forecast_status,
    occupancy_status,
    orders_status,
    replicas_status,
    trouble_status,
    undecided_replicas,
)
from autoscaler.app.watched_pool import WatchedPool
from autoscaler.ports import Leadership
from autoscaler.telemetry.status import (
    DecisionStatus,
    ObjectiveStatus,
    PoolStatus,
    SlotsStatus,
    WaitsStatus,
)


def watched_status(pool: WatchedPool, now: float) -> PoolStatus:
    """Put together what one pool shows; waits and answers are the doors' to tell."""
    state, objective = pool.control.state, pool.settings.objective
    numbers = state.decision.numbers if state else None
    seen = state.observation if state else None
    per_replica = state.fleet.slots_per_replica if state else pool.settings.slots_per_replica
    at_least = pool.settings.policy.replicas_min if pool.control.acts else 0
    ready = state.fleet.ready if state else pool.replicas.ready
    slots = ready * per_replica
    busy = round(seen.busy_slots_mean) if seen else 0
    return PoolStatus(
        name=pool.name,
        arrival_rate=numbers.arrival_rate if numbers else nan,
        offered_load=numbers.arrival_rate * numbers.service_time_mean if numbers else nan,
        forecast=forecast_status(state),
        replicas=replicas_status(state) if state else undecided_replicas(ready, at_least),
        slots=SlotsStatus(busy=busy, free=max(0, slots - busy), total=slots, per_replica=per_replica),
        occupancy=occupancy_status(state),
        queue_depth=seen.queue_depth if seen else 0,
        oldest_wait=seen.oldest_wait if seen else 0.0,
        waits=WaitsStatus(),
        objective=ObjectiveStatus(
            wait_seconds=objective.wait_seconds,
            wait_quantile=objective.wait_quantile,
            utilization_low=objective.utilization_low,
            utilization_high=objective.utilization_high,
        ),
        last_decision=DecisionStatus(str(state.decision), state.wall_time) if state else None,
        cold_start_mean=state.fleet.cold_start_mean if state else nan,
        cold_start_p90=state.fleet.cold_start_p90 if state else nan,
        orders=orders_status(state),
        acts=pool.control.acts,
        troubles=trouble_status(pool.troubles, now),
    )


def controller_metrics(pools: Sequence[WatchedPool], leadership: Leadership) -> Iterator[Metric]:
    """Yield whether this one leads, and what is known of the doors."""
    leads = GaugeMetricFamily("autoscaler_leads", "1 if this controller acts, 0 if it stands by.")
    leads.add_metric([], float(leadership.is_leader))
    doors = GaugeMetricFamily(
        "autoscaler_doors",
        "Sidecars or proxies, by what is known of them: heard, carried (their last rates stand), blind.",
        labels=["pool", "state"],
    )
    restarts = CounterMetricFamily(
        "autoscaler_door_restarts", "Sidecars or proxies that began anew.", labels=["pool"]
    )
    shares = GaugeMetricFamily(
        "autoscaler_proxy_slots",
        "Slots of shared replicas that a proxy may use, as the controller that leads has divided them.",
        labels=["pool", "proxy"],
    )
    for pool in pools:
        for proxy, slots in (pool.teller.shares() if pool.teller else {}).items():
            shares.add_metric([pool.name, proxy], slots)
        counts = pool.doors.counts
        for state in ("heard", "carried", "blind"):
            doors.add_metric([pool.name, state], getattr(counts, state))
        restarts.add_metric([pool.name], counts.restarts)
    yield from (leads, doors, restarts, shares)
