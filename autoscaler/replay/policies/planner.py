"""A throughput planner of the Dynamo kind: every three minutes, the expected rate over that of a replica.

Restated from the throughput scaling of `components/src/dynamo/planner` of ai-dynamo/dynamo, main branch of
2026 (one pool, mode "agg"). At the end of each adjustment interval of 180 s the requests that came in it
are given to a predictor (`planner_predictors.py`; ARIMA by default), and the replicas for the next are its
prediction over the rate that one replica sustains at the objective, as profiled beforehand: the largest
batch whose step keeps the time per token, over the time that an answer takes at it. There is no headroom in
that and nothing for a queue, so the default occupancy of a slot is 1; lower ones are for the sweep.

The planner keeps no history of its own across restarts; it may be warmed from a trace, and is here, with
the scenario's history, brought to its interval.

Left out: prefill apart from decode; factors that correct the profile by measured latency (in a replay the
profile is exact); the budget of 8 GPUs; load-based scaling, which is off by default; a Kalman predictor.
"""

from math import ceil, floor
from typing import Literal

from autoscaler.domain import Fleet, Observation
from autoscaler.replay.policies.planner_predictors import Arima, Constant, Predictor, TrendOfProphet
from autoscaler.replay.scenario import Scenario

ADJUSTMENT_INTERVAL = 180.0  # s
TARGET = 1.0
WARM_UP_MAX = 3360  # intervals of the history: a week

PredictorName = Literal["constant", "arima", "prophet"]


def largest_batch(step_base: float, step_per_request: float, token_time: float) -> int:
    """Requests in a batch whose step, base + per request [s], stays within `token_time` [s]."""
    return max(0, floor(round((token_time - step_base) / step_per_request, 9)))


def replica_rate(batch: int, tokens_out: float, token_time: float) -> float:
    """Answers of `tokens_out` tokens that one replica gives at that batch and time per token [1/s]."""
    return batch / (tokens_out * token_time)


def planned_replicas(arrival_rate: float, rate: float) -> int:
    """Replicas that sustain an arrival rate at `rate` [1/s] each; at least one."""
    return max(1, ceil(round(arrival_rate / rate, 9)))


class PlannerPolicy:
    """The planner for a pool whose profile is the scenario's service law."""

    interval: float | None = ADJUSTMENT_INTERVAL

    def __init__(
        self, scenario: Scenario, target: float = TARGET, predictor: PredictorName = "arima", window: int = 50
    ) -> None:
        self.name = f"planner {predictor} {target:.2f}"
        self._rate = target * scenario.slots_per_replica / scenario.service_time_mean
        self._predictor = _predictor(predictor, window)
        for count in _history(scenario):
            self._predictor.add(count)

    def decide(self, observation: Observation, fleet: Fleet, now: float) -> int:
        """Replicas for the next interval."""
        per_interval = ADJUSTMENT_INTERVAL / observation.interval
        self._predictor.add(observation.arrivals * per_interval)
        return planned_replicas(self._predictor.next() / ADJUSTMENT_INTERVAL, self._rate)


def _predictor(name: PredictorName, window: int) -> Predictor:
    if name == "prophet":
        return TrendOfProphet(ADJUSTMENT_INTERVAL, window)
    return Arima() if name == "arima" else Constant()


def _history(scenario: Scenario) -> list[float]:
    """Counts of adjustment intervals up to the end of the history, each at the rate that it lies in."""
    length = len(scenario.history) * scenario.history_interval
    known = min(WARM_UP_MAX, floor(length / ADJUSTMENT_INTERVAL))
    middles = [length - (known - k - 0.5) * ADJUSTMENT_INTERVAL for k in range(known)]
    share = ADJUSTMENT_INTERVAL / scenario.history_interval
    return [float(scenario.history[floor(middle / scenario.history_interval)]) * share for middle in middles]
