"""Who takes part in a replay: our controller, and the policies that people use today, by name and target.

A contender is plain data, so that it can be sent to another process and be made into a policy there.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from autoscaler.domain import Decision, Fleet, Observation
from autoscaler.replay.policies import (
    FixedPolicy,
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
    peak_replicas,
    planner,
    ray_serve,
    skyserve,
)
from autoscaler.replay.scenario import Scenario

OWN = "autoscaler"
"""The name of our controller."""
OWN_REACTING = "no forecast"
"""Ours without history and forecast: it sees what comes, not what will."""
FIXED = "fixed"
SWEPT = (0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
"""Targets that are tried to find out how good a peer could have been with hindsight [1]."""
TARGET_LEAST, TARGET_MOST = 0.05, 1.0
REPLICAS_MOST = 100_000
"""Of a fixed fleet; each replica is an object with a life of its own."""


@dataclass(frozen=True, slots=True)
class Contender:
    """A policy that takes part.

    Attributes
    ----------
    family : str
        `autoscaler`, `fixed`, `hpa`, …
    target : float or None
        Occupancy that it aims at [1]; of a fixed fleet above 1: its replicas. None if it has none.
    name : str
        As it stands in tables: "hpa 0.70", "fixed 57".
    tried : bool
        Whether it plays only to find the best target of its family.
    """

    family: str
    target: float | None
    name: str
    tried: bool = False

    @property
    def is_own(self) -> bool:
        """Whether it is our controller, with or without its forecast."""
        return self.family in (OWN, OWN_REACTING)

    def replicas_initial(self, scenario: Scenario) -> int:
        """Replicas that are ready when the replay begins [1]."""
        return fixed_replicas(scenario, self.target) if self.family == FIXED else scenario.replicas_initial

    def policy(self, scenario: Scenario, start_wall_time: float) -> Policy:
        """Make the policy for a replay that begins at `start_wall_time` [s since the epoch]."""
        if self.family == OWN:
            return OwnPolicy(scenario, start_wall_time=start_wall_time)
        if self.family == OWN_REACTING:
            return _Reacting(replace(scenario, history=np.empty(0)))
        return PEERS[self.family].make(scenario, self.target)


class _Reacting(OwnPolicy):
    """Our controller, which is never given the fit that it asks for."""

    def decide(self, observation: Observation, fleet: Fleet, now: float) -> Decision:
        """Step the controller."""
        return self._controller.step(observation, fleet, now)


@dataclass(frozen=True, slots=True)
class Peer:
    """A kind of policy.

    Attributes
    ----------
    make : callable
        Makes one for a scenario and a target.
    target : float or None
        What it aims at unless told: as its documentation says; None if it takes no target.
    """

    make: Callable[[Scenario, float | None], Policy]
    target: float | None


def fixed_replicas(scenario: Scenario, target: float | None) -> int:
    """Return the replicas of which this share is busy in the busiest 5 minutes; above 1 it is a number."""
    return round(target) if target is not None and target > 1 else peak_replicas(scenario, target)


def _fixed(scenario: Scenario, target: float | None) -> Policy:
    return FixedPolicy(fixed_replicas(scenario, target))


def _of_target(policy: Callable[[float], Policy], target: float) -> Peer:
    """Return a peer whose policy takes nothing but its target."""
    return Peer(lambda scenario, given: policy(target if given is None else given), target)


PEERS: Mapping[str, Peer] = {
    FIXED: Peer(_fixed, None),
    "hpa": _of_target(HpaPolicy, hpa.TARGET),
    "keda": _of_target(KedaPolicy, keda.CONCURRENCY_TARGET),
    "keda-queue": Peer(lambda scenario, target: KedaPolicy.on_queue(), None),
    "knative": _of_target(KnativePolicy, knative.TARGET),
    "ray-serve": _of_target(RayServePolicy, ray_serve.TARGET),
    "planner": Peer(
        lambda scenario, target: PlannerPolicy(scenario, target or planner.TARGET), planner.TARGET
    ),
    "predictive-hpa": Peer(
        lambda scenario, target: PredictiveHpaPolicy(scenario, target or hpa.TARGET), hpa.TARGET
    ),
    "skyserve": Peer(
        lambda scenario, target: SkyServePolicy(scenario.service_time_mean, target or skyserve.TARGET),
        skyserve.TARGET,
    ),
    "flink-band": _of_target(FlinkBandPolicy, flink_band.TARGET),
}
"""Everybody that can be named."""
USUAL_PEERS = (FIXED, "hpa", "knative", "ray-serve", "planner")
"""Those that most people have."""


def contender(scenario: Scenario, family: str, target: float | None = None, tried: bool = False) -> Contender:
    """Return who plays under this name over `scenario`, at its own target unless told."""
    if family == FIXED:
        return Contender(FIXED, target, f"{FIXED} {fixed_replicas(scenario, target):,}", tried)
    target = target or (PEERS[family].target if family in PEERS else None)
    return Contender(family, target, family if target is None else f"{family} {target:.2f}", tried)


def lineup(
    scenario: Scenario, peers: Sequence[tuple[str, float | None]], sweep: bool, no_forecast: bool
) -> tuple[Contender, ...]:
    """Return everybody who plays, ours first, nobody twice; with `sweep` the peers at every target too."""
    named = [contender(scenario, family, target) for family, target in peers]
    swept = dict.fromkeys(each.family for each in named if each.target is not None or each.family == FIXED)
    tried = [contender(scenario, family, target, tried=True) for family in swept for target in SWEPT]
    ours = [OWN, *[OWN_REACTING] * no_forecast]
    everybody = [*(contender(scenario, each) for each in ours), *named, *(tried if sweep else ())]
    first_of_name = {each.name: each for each in reversed(everybody)}
    return tuple(each for each in everybody if first_of_name[each.name] is each)
