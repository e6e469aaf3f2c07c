"""What the program says of itself, put together from the ledger, the control loop and the windows."""

from collections.abc import Sequence
from dataclasses import replace
from math import nan

from autoscaler import __version__
from autoscaler.app.pool import Pool
from autoscaler.control_loop import ControlState
from autoscaler.domain import Reason
from autoscaler.telemetry.gpu_reading import GpuReading
from autoscaler.telemetry.status import (
    DecisionStatus,
    DisagreementStatus,
    ForecastStatus,
    GpuStatus,
    ObjectiveStatus,
    OccupancyStatus,
    OrdersStatus,
    PoolStatus,
    ReplicasStatus,
    SignalStatus,
    SlotsStatus,
    Status,
    SubstitutionStatus,
    TroubleStatus,
)
from autoscaler.telemetry.trouble_watch import TroubleWatch


def program_status(
    pools: list[Pool],
    now: float,
    wall_time: float,
    started_at: float,
    lag: float,
    gpus: Sequence[GpuReading] = (),
) -> Status:
    """Put together the status of the moment."""
    return Status(
        version=__version__,
        wall_time=wall_time,
        uptime=now - started_at,
        event_loop_lag=lag,
        pools=tuple(pool_status(pool, now) for pool in pools),
        gpus=tuple(_gpu(reading) for reading in gpus),
    )


def _gpu(reading: GpuReading) -> GpuStatus:
    return GpuStatus(
        reading.index,
        reading.name,
        reading.busy_ratio,
        reading.memory_used,
        reading.memory_total,
        reading.power,
        tuple(sorted(reading.throttled or ())),
        reading.lost,
    )


def pool_status(pool: Pool, now: float) -> PoolStatus:
    """Put together what one pool shows."""
    state, ledger = pool.control.state, pool.drive.snapshot()
    objective = pool.settings.objective
    numbers = state.decision.numbers if state else None
    return PoolStatus(
        name=pool.name,
        arrival_rate=numbers.arrival_rate if numbers else nan,
        offered_load=numbers.arrival_rate * numbers.service_time_mean if numbers else nan,
        forecast=forecast_status(state),
        replicas=replace(_replicas(pool, state), ejected=pool.drive.replicas_ejected),
        slots=SlotsStatus(
            busy=ledger.busy,
            free=max(0, ledger.slots - ledger.busy),
            total=ledger.slots,
            per_replica=state.fleet.slots_per_replica if state else pool.settings.slots_per_replica,
        ),
        occupancy=occupancy_status(state),
        queue_depth=ledger.waiting,
        oldest_wait=ledger.oldest_wait,
        waits=pool.waits.summary(objective, now),
        objective=ObjectiveStatus(
            wait_seconds=objective.wait_seconds,
            wait_quantile=objective.wait_quantile,
            utilization_low=objective.utilization_low,
            utilization_high=objective.utilization_high,
        ),
        last_decision=DecisionStatus(str(state.decision), state.wall_time) if state else None,
        requests=pool.metrics.outcomes(),
        cold_start_mean=state.fleet.cold_start_mean if state else nan,
        cold_start_p90=state.fleet.cold_start_p90 if state else nan,
        slots_leaked=ledger.slots_leaked,
        ledger_difference=ledger.ledger_difference,
        tokens=pool.tokens.summary(now),
        disagreements=tuple(
            DisagreementStatus(found.replica, found.diagnosis.value, found.requests, found.text)
            for found in pool.ledger.findings
        ),
        orders=orders_status(state),
        acts=pool.control.acts,
        signals=tuple(
            SignalStatus(each.name, each.reading.value, each.grade.standing.value, each.grade.text)
            for each in pool.signals.signals
        ),
        rows_per_call=pool.drive.rows_per_call,
        troubles=trouble_status(pool.troubles, now),
        substitutions=tuple(
            SubstitutionStatus(each.pool, each.substitute, each.share, each.handed_over)
            for each in (*([] if pool.standing_in is None else [pool.standing_in]), *pool.stands_in_for)
        ),
    )


def trouble_status(watch: TroubleWatch, now: float) -> tuple[TroubleStatus, ...]:
    return tuple(
        # What this look finds began after `now` was read.
        TroubleStatus(each.where, each.text, max(0.0, now - each.began_at))
        for each in watch.standing
    )


def forecast_status(state: ControlState | None) -> ForecastStatus:
    if state is None:
        return ForecastStatus()
    numbers = state.decision.numbers
    return ForecastStatus(
        mean=numbers.forecast_rate,
        p10=numbers.forecast_rate_p10,
        p90=numbers.forecast_rate_p90,
        lead_time=numbers.lead_time,
    )


def _replicas(pool: Pool, state: ControlState | None) -> ReplicasStatus:
    if state is not None:
        return replicas_status(state)
    return undecided_replicas(
        len(pool.drive.ready_replicas()), pool.settings.policy.replicas_min if pool.control.acts else 0
    )


def replicas_status(state: ControlState) -> ReplicasStatus:
    fleet = state.fleet
    return ReplicasStatus(state.decision.desired, fleet.starting, fleet.ready, fleet.draining, fleet.asleep)


def undecided_replicas(ready: int, at_least: int) -> ReplicasStatus:
    """Say what there is before the first decision: who is ready stays, and `at_least` so many are wanted."""
    return ReplicasStatus(desired=max(ready, at_least), starting=0, ready=ready, draining=0)


def occupancy_status(state: ControlState | None) -> OccupancyStatus:
    return OccupancyStatus(state.occupancy, state.occupancy_rolling) if state else OccupancyStatus()


def orders_status(state: ControlState | None) -> OrdersStatus:
    """Say what becomes of what is ordered."""
    if state is None:
        return OrdersStatus()
    decision, numbers = state.decision, state.decision.numbers
    return OrdersStatus(
        wanted=numbers.replicas_wanted,
        late=numbers.replicas_late,
        probability=numbers.supply_probability,
        delay=numbers.supply_delay,
        is_short=decision.reason is Reason.SUPPLY_SHORT,
        has_no_effect=decision.reason is Reason.NO_EFFECT,
        asked_elsewhere=numbers.asked_elsewhere,
    )
