"""One contender over one scenario, in a process of its own."""

from dataclasses import dataclass
from functools import lru_cache

from autoscaler.replay.policies import FixedPolicy, Policy, peak_replicas
from autoscaler.replay.report import Report, clairvoyant_gpu_hours, report
from autoscaler.replay.run import replay
from autoscaler.replay.scenario import Scenario
from load.bench.policies_field import FIXED, Contender
from load.bench.scenarios import load_scenario

SEED = 0
MET_MIN, BAD_WINDOWS_MAX = 0.99, 0.02


@dataclass(frozen=True, slots=True)
class Result:
    """What a contender came to on a scenario."""

    scenario: str
    contender: Contender
    report: Report

    @property
    def cost(self) -> float:
        """GPU-hours as a multiple of the clairvoyant bound."""
        return self.report.gpu_hours / self.report.clairvoyant_gpu_hours

    @property
    def meets(self) -> bool:
        """Whether it kept the objective."""
        return meets(self.report)


def meets(judged: Report) -> bool:
    """Whether the objective was kept for enough requests, and in enough windows."""
    return judged.objective_met >= MET_MIN and judged.bad_windows <= BAD_WINDOWS_MAX


def run(name: str, hours: float, contender: Contender) -> Result:
    """Replay; for a fixed fleet, find the smallest that meets the objective."""
    scenario, bound = _scenario(name, hours)
    if contender.name == FIXED:
        return Result(name, contender, _cheapest_fixed(scenario, bound))
    return Result(name, contender, _judged(scenario, contender.policy(scenario), bound))


@lru_cache(maxsize=1)
def _scenario(name: str, hours: float) -> tuple[Scenario, float]:
    scenario = load_scenario(name, hours)
    return scenario, clairvoyant_gpu_hours(scenario, SEED)


def _judged(scenario: Scenario, policy: Policy, bound: float) -> Report:
    return report(policy.name, replay(scenario, policy, SEED), scenario, bound)


def _cheapest_fixed(scenario: Scenario, bound: float) -> Report:
    """Bisect on the size, from what the mean load needs to twice what the peak does."""
    load = float(scenario.counts.sum()) / scenario.duration * scenario.service_time_mean
    too_small, enough = int(load / scenario.slots_per_replica), 2 * peak_replicas(scenario)
    best = None
    while enough - too_small > 1:
        size = (too_small + enough) // 2
        judged = _judged(scenario.starting_with(size), FixedPolicy(size), bound)
        if meets(judged):
            enough, best = size, judged
        else:
            too_small = size
    return best or _judged(scenario.starting_with(enough), FixedPolicy(enough), bound)
