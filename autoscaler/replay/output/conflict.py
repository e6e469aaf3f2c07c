"""Whether the wait and the band can be kept together by the load that was replayed.

With few slots a short wait can only be kept by slots that idle most of the time. So there is a load from
which on both can be kept, and below which they exclude one another. Waits are those of the queueing formulas
for steady Poisson arrivals: what remains even if every change of demand were known.
"""

from dataclasses import dataclass
from math import floor

import numpy as np

from autoscaler.domain import Objective
from autoscaler.queueing.staffing import servers_for_wait
from autoscaler.replay.output.play import Played
from autoscaler.replay.scenario import Scenario

_SCV_MOST = 10.0
"""The formulas take no more [1]."""
_LOADS = np.geomspace(0.25, 1000.0, 100)
"""Among which the load is sought from which on both can be kept [erlang]."""
_OFTEN = 0.1


@dataclass(frozen=True, slots=True)
class Conflict:
    """How often wait and band exclude one another.

    Attributes
    ----------
    share : float
        Of the windows with arrivals, their load is too small for both [1].
    offered_load_enough : float
        From this load on both can be kept [erlang].
    """

    share: float
    offered_load_enough: float


def conflict_of(scenario: Scenario, played: Played) -> Conflict | None:
    """Return how often they exclude one another; None if that is seldom."""
    loads = played.windows.offered_load[played.windows.arrivals > 0]
    enough = _load_enough(scenario)
    share = float(np.mean(loads < enough)) if len(loads) else 0.0
    return Conflict(share, enough) if share >= _OFTEN else None


def _load_enough(scenario: Scenario) -> float:
    """Return the least load from which on the slots that keep the wait are busy enough for the band."""
    enough = float(_LOADS[-1])
    for load in reversed(_LOADS.tolist()):
        if _servers(scenario, load) > _most_in_band(scenario.objective, load):
            break
        enough = load
    return enough


def _servers(scenario: Scenario, offered_load: float) -> int:
    service, objective = scenario.service_time_mean, scenario.objective
    return servers_for_wait(
        offered_load / service,
        service,
        objective.wait_seconds,
        objective.wait_quantile,
        service_scv=min(scenario.service_scv, _SCV_MOST),
    )


def _most_in_band(objective: Objective, offered_load: float) -> int:
    """Return the most slots of which the band's lower edge is busy."""
    return max(1, floor(offered_load / objective.utilization_low + 1e-9))
