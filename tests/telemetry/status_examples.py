"""A program in the middle of a busy minute, to be varied by the tests."""

from dataclasses import replace

from autoscaler.domain import Outcome
from autoscaler.telemetry.status import (
    DecisionStatus,
    ForecastStatus,
    ObjectiveStatus,
    OccupancyStatus,
    PoolStatus,
    ReplicasStatus,
    SlotsStatus,
    Status,
    WaitsStatus,
)

WALL_TIME = 1_796_047_510.0  # 2026-11-30 14:05:10 UTC


def a_pool(**changes) -> PoolStatus:
    pool = PoolStatus(
        name="chat",
        arrival_rate=8.25,
        forecast=ForecastStatus(mean=9.5, p10=7.0, p90=12.0, lead_time=20.0),
        replicas=ReplicasStatus(desired=6, starting=2, ready=4, draining=1),
        slots=SlotsStatus(busy=11, free=5, total=16),
        occupancy=OccupancyStatus(last_interval=0.6875, rolling=0.64),
        queue_depth=3,
        oldest_wait=0.4,
        waits=WaitsStatus(p50=0.02, p95=0.8, p99=2.4, count=1200, met=0.9975),
        objective=ObjectiveStatus(5.0, 0.99, 0.60, 0.75),
        last_decision=DecisionStatus(
            "Scale up from 4 to 6 replicas: demand rises; 9.5/s expected in 20 s (now 8.25/s) x 1.2 s "
            "= 11.4 erlangs; the band asks 16 slots, the wait 18; the wait objective binds; "
            "63% busy expected.",
            WALL_TIME - 10.0,
        ),
        requests={Outcome.COMPLETED: 5123, Outcome.REJECTED: 2},
        offered_load=9.9,
        cold_start_mean=14.0,
        cold_start_p90=19.5,
    )
    return replace(pool, **changes)


def a_status(*pools: PoolStatus, **changes) -> Status:
    status = Status(
        version="0.1.0",
        wall_time=WALL_TIME,
        uptime=754.0,
        event_loop_lag=0.0021,
        pools=pools or (a_pool(),),
    )
    return replace(status, **changes)
