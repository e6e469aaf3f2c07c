"""The Predictive HPA: an HPA, and what Holt-Winters makes of the counts that it asked for.

Restated from jthomperoo/predictive-horizontal-pod-autoscaler. It does what an HPA does (`hpa.py`); every so
many syncs (its `perInterval`) the replicas asked for go into a history, Holt-Winters over that predicts the
next entry, rounded up, and the larger of both goes on to the behaviour (decision type "maximum").

Season and coefficients are the user's, without defaults. For a daily season an entry is made every 20 syncs
(5 minutes), 288 a day, and 4 days are kept, as in its examples; the first entries are what the HPA would
have asked for over the scenario's history. Level, trend and season are smoothed by 0.5, 0.1 and 0.5: the
0.9 of all three in its examples follow every noise and cost more than twice as much. The states it begins
with are taken by statsmodels' heuristic, one of the documented methods; to estimate 290 of them anew each
time would take longer than the 30 s it is given.

Left out: linear models, tuning at run time by a hook, several models.
"""

from collections import deque
from math import ceil

import numpy as np
from statsmodels.tsa.holtwinters import ExponentialSmoothing

from autoscaler.domain import Fleet, Observation
from autoscaler.replay.policies.hpa import SYNC_PERIOD, TARGET, Behavior, HpaPolicy
from autoscaler.replay.scenario import Scenario

SYNCS_PER_ENTRY = 20
SEASON = 288  # entries
SEASONS_STORED = 4
ENTRIES_MIN = 10 + 2 * (SEASON // 2)
LEVEL, TREND, SEASONAL = 0.5, 0.1, 0.5  # smoothing coefficients


def predicted_replicas(counts: list[int], season: int = SEASON) -> int:
    """The next entry after `counts` by additive Holt-Winters, rounded up."""
    model = ExponentialSmoothing(
        np.array(counts, dtype=np.float64),
        trend="add",
        seasonal="add",
        seasonal_periods=season,
        initialization_method="heuristic",
    )
    fitted = model.fit(
        smoothing_level=LEVEL,
        smoothing_trend=TREND,
        smoothing_seasonal=SEASONAL,
        optimized=False,
    )
    return ceil(round(float(fitted.forecast(1)[0]), 9))


class PredictiveHpaPolicy:
    """An HPA with a Holt-Winters model of its own counts."""

    interval: float | None = SYNC_PERIOD

    def __init__(self, scenario: Scenario, target: float = TARGET) -> None:
        self.name = f"predictive hpa {target:.2f}"
        self._hpa = HpaPolicy(target)
        self._behavior = Behavior()
        self._entries = deque(_history(scenario, target), maxlen=SEASON * SEASONS_STORED)
        self._syncs = 0
        self._predicted = 0

    def decide(self, observation: Observation, fleet: Fleet, now: float) -> int | None:
        """Replicas to write: the larger of the HPA's and the model's."""
        wanted = self._hpa.wanted(observation, fleet, now)
        if wanted is None:
            return None
        if self._syncs % SYNCS_PER_ENTRY == 0:
            self._entries.append(wanted)
            if len(self._entries) >= ENTRIES_MIN:
                self._predicted = predicted_replicas(list(self._entries))
        self._syncs += 1
        return self._behavior.allowed(max(wanted, self._predicted), fleet.ordered, now)


def _history(scenario: Scenario, target: float) -> list[int]:
    """What the HPA would have asked for in each 5 minutes of the history [replicas]."""
    entry = SYNCS_PER_ENTRY * SYNC_PERIOD
    per_entry = max(1, round(entry / scenario.history_interval))
    whole = len(scenario.history) // per_entry * per_entry
    counts = scenario.history[len(scenario.history) - whole :].reshape(-1, per_entry).sum(axis=1)
    load = counts / (per_entry * scenario.history_interval) * scenario.service_time_mean
    return [max(1, ceil(a / (target * scenario.slots_per_replica))) for a in load.tolist()]
