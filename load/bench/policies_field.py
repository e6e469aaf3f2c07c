"""Who runs in the comparison: this program as it comes, the peers by target, and fixed fleets.

A contender is a name and a target, so that it can be sent to another process; there it becomes a policy for
a scenario.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from autoscaler.replay.policies import (
    FlinkBandPolicy,
    HpaPolicy,
    KedaPolicy,
    KnativePolicy,
    OwnPolicy,
    PlannerPolicy,
    Policy,
    PredictiveHpaPolicy,
    RayServePolicy,
    SkyServePolicy,
    flink_band,
    hpa,
    keda,
    knative,
    planner,
    ray_serve,
    skyserve,
)
from autoscaler.replay.scenario import Scenario

SWEEP = (0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
FIXED = "fixed"

LEAN = "autoscaler lean"


def _lean(scenario: Scenario) -> Policy:
    """This program without an upper edge of the band: the wait alone decides."""
    return OwnPolicy(replace(scenario, objective=replace(scenario.objective, utilization_high=1.0)))


OURS: dict[str, Callable[[Scenario], Policy]] = {"autoscaler": OwnPolicy, LEAN: _lean}
"""This program, a line for each mode; only the scenario's objective is given to it."""


@dataclass(frozen=True, slots=True)
class Peer:
    """How a peer is made for a scenario and a target, its default target, and whether others are tried."""

    make: Callable[[Scenario, float], Policy]
    default: float
    swept: bool = True


PEERS: dict[str, Peer] = {
    "hpa": Peer(lambda scenario, target: HpaPolicy(target), hpa.TARGET),
    "predictive hpa": Peer(PredictiveHpaPolicy, hpa.TARGET),
    "keda concurrency": Peer(lambda scenario, target: KedaPolicy(target), keda.CONCURRENCY_TARGET),
    "keda queue": Peer(lambda scenario, length: KedaPolicy.on_queue(length), keda.QUEUE_LENGTH, swept=False),
    "knative": Peer(lambda scenario, target: KnativePolicy(target), knative.TARGET),
    "ray serve": Peer(lambda scenario, target: RayServePolicy(target), ray_serve.TARGET),
    "planner constant": Peer(lambda s, target: PlannerPolicy(s, target, "constant"), planner.TARGET),
    "planner arima": Peer(lambda s, target: PlannerPolicy(s, target, "arima"), planner.TARGET),
    "planner prophet": Peer(lambda s, target: PlannerPolicy(s, target, "prophet"), planner.TARGET),
    "skyserve": Peer(lambda s, target: SkyServePolicy(s.service_time_mean, target), skyserve.TARGET),
    "flink band": Peer(lambda scenario, target: FlinkBandPolicy(target), flink_band.TARGET),
}


@dataclass(frozen=True, slots=True)
class Contender:
    """One run. Ours and fixed fleets have no target; `default` marks a peer's documented one."""

    name: str
    target: float | None = None
    default: bool = False

    def policy(self, scenario: Scenario) -> Policy:
        """Make it."""
        if self.target is None:
            return OURS[self.name](scenario)
        return PEERS[self.name].make(scenario, self.target)


def field_of(names: list[str]) -> list[Contender]:
    """Return the contenders of these names, all of them if there are none."""
    chosen = names or [*OURS, *PEERS, FIXED]
    contenders = [Contender(name) for name in chosen if name in OURS or name == FIXED]
    for name in (name for name in chosen if name in PEERS):
        peer = PEERS[name]
        targets = sorted({peer.default, *(SWEEP if peer.swept else ())})
        contenders += [Contender(name, target, target == peer.default) for target in targets]
    return contenders
