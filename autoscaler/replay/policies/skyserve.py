"""SkyServe's request-rate autoscaler: a minute's requests, acted on after five or twenty agreeing minutes.

Restated from `sky/serve/autoscalers.py` (`RequestRateAutoscaler`) of skypilot-org/skypilot, version 5 of
its serve library. Every 20 s the requests of the last 60 s are divided by the target rate of a replica.
Only when 15 looks in a row ask for more (300 s), or 60 for fewer (1200 s), the last count is taken; one
that agrees with what there is starts the count anew.

A service without a target rate is of fixed size; there is no default. The target here is an occupancy, 0.70
unless told otherwise: the rate of a replica is its slots, times that, over the mean time of service, which
the user is trusted to know.

Left out: on-demand fallback for spot replicas, rolling updates, the look every 5 s while there are no
replicas. The load balancer sends its times of arrival every 20 s; they are taken to have come just before
each look.
"""

from math import ceil

from autoscaler.domain import Fleet, Observation
from autoscaler.replay.policies.signals import SlidingMean

DECISION_INTERVAL = 20.0  # s
QPS_WINDOW = 60.0  # s
UPSCALE_DELAY = 300.0  # s
DOWNSCALE_DELAY = 1200.0  # s
TARGET = 0.70


class RequestRate:
    """The algorithm alone, with its counters of agreeing looks."""

    def __init__(self, target_rate: float, replicas: int) -> None:
        self._target_rate = target_rate
        self._target = replicas
        self._up = self._down = 0

    def target(self, rate: float) -> int:
        """Replicas after one more look, at `rate` [1/s]."""
        wanted = max(1, ceil(round(rate / self._target_rate, 9)))
        self._up = self._up + 1 if wanted > self._target else 0
        self._down = self._down + 1 if wanted < self._target else 0
        if self._up >= int(UPSCALE_DELAY / DECISION_INTERVAL):
            self._target, self._up = wanted, 0
        elif self._down >= int(DOWNSCALE_DELAY / DECISION_INTERVAL):
            self._target, self._down = wanted, 0
        return self._target


class SkyServePolicy:
    """A service whose replicas are to be busy `target` of their time, at the mean `service_time` [s]."""

    interval: float | None = DECISION_INTERVAL

    def __init__(self, service_time: float, target: float = TARGET) -> None:
        self.name = f"skyserve {target:.2f}"
        self._service_time = service_time
        self._occupancy = target
        self._rate = SlidingMean(QPS_WINDOW)
        self._scaler: RequestRate | None = None

    def decide(self, observation: Observation, fleet: Fleet, now: float) -> int:
        """Replicas to launch or keep."""
        if self._scaler is None:
            rate = self._occupancy * fleet.slots_per_replica / self._service_time
            self._scaler = RequestRate(rate, fleet.ordered)
        interval = observation.interval
        return self._scaler.target(self._rate.put(observation.arrivals / interval, interval, now))
