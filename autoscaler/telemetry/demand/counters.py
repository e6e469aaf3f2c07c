"""The demand of a door as counters, for who reads it through a Prometheus (`demand.prometheus`)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from prometheus_client.core import CounterMetricFamily
from prometheus_client.metrics_core import Metric

from autoscaler.domain import Observation

ARRIVALS = "autoscaler_arrivals"
SERVICE_SQUARES = "autoscaler_service_time_squares"
BUSY_TIME = "autoscaler_busy_slot_seconds"


@dataclass(slots=True)
class Totals:
    """Everything that came to one pool since the start."""

    arrivals: int = 0
    service_squares: float = 0.0
    """Sum of S² over all services [s²]."""
    busy_time: float = 0.0
    """Slots in use, integrated over time [s]."""

    def add(self, seen: Observation) -> None:
        """Add one interval."""
        self.arrivals += seen.arrivals
        self.service_squares += seen.service_time_square_sum
        self.busy_time += seen.busy_slots_mean * seen.interval


def demand_counters(totals: Mapping[str, Totals]) -> Iterator[Metric]:
    """Yield the counters of all pools."""
    arrivals = CounterMetricFamily(
        ARRIVALS, "Requests at the door, whatever became of them.", labels=["pool"]
    )
    squares = CounterMetricFamily(
        SERVICE_SQUARES, "Sum of squared service times, in seconds squared.", labels=["pool"]
    )
    busy = CounterMetricFamily(BUSY_TIME, "Slots in use, integrated over time.", labels=["pool"])
    for pool, total in totals.items():
        arrivals.add_metric([pool], total.arrivals)
        squares.add_metric([pool], total.service_squares)
        busy.add_metric([pool], total.busy_time)
    yield from (arrivals, squares, busy)
