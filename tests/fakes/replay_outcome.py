"""Outcomes of replays that nobody played: the figures and windows that a test wants."""

from dataclasses import replace

import numpy as np

from autoscaler.domain import Objective
from autoscaler.replay.output.lineup import Contender
from autoscaler.replay.output.play import Played, Stage
from autoscaler.replay.output.standing import Outcome, standings_of
from autoscaler.replay.output.words import Price
from autoscaler.replay.report import Report
from autoscaler.replay.scenario import Scenario
from autoscaler.replay.windows import Windows

HOURS = 2
GOOD = Report(
    policy="",
    requests=7200,
    hours=2.0,
    gpu_hours=30.0,
    busy_gpu_hours=20.0,
    utilization=0.67,
    replicas_mean=15.0,
    replicas_max=20,
    wait_p50=0.0,
    wait_p95=0.4,
    wait_p99=2.0,
    objective_met=0.998,
    bad_windows=0.0,
    time_in_band=0.8,
    scale_ups=3,
    scale_downs=2,
    interruptions=0,
    broken=0,
    clairvoyant_gpu_hours=20.0,
)


def a_scenario(**circumstances) -> Scenario:
    """Return one request a second for two hours, of 10 s each."""
    given = {"service_time_mean": 10.0, "objective": Objective(wait_seconds=5.0), "replicas_initial": 15}
    return Scenario(np.ones(HOURS * 3600), 1.0, **(given | circumstances))


def windows_of(load: float = 10.0, replicas: float = 15.0, met: float = 1.0) -> Windows:
    """Return windows of five minutes that are all alike."""
    n = HOURS * 12
    of = np.ones(n)
    return Windows(
        start=np.arange(n) * 300.0,
        arrivals=np.full(n, 300),
        offered_load=load * of,
        slots_ready=replicas * of,
        replicas_ready=replicas * of,
        replicas_starting=0.0 * of,
        occupancy=load / replicas * of,
        wait_p50=0.0 * of,
        wait_p95=0.4 * of,
        wait_p99=2.0 * of,
        met=met * of,
        bad=met * of < 0.95,
    )


def played(
    family: str = "autoscaler",
    target: float | None = None,
    *,
    seed: int = 0,
    tried: bool = False,
    windows: Windows | None = None,
    **figures,
) -> Played:
    """Return a replay with these figures, of a contender named after family and target."""
    name = family if target is None else f"{family} {target:.2f}"
    contender = Contender(family, target, name, tried)
    return Played(
        contender,
        seed,
        replace(GOOD, policy=name, **figures),
        windows or windows_of(),
        replicas_least=12,
        replicas_most=20,
        bindings={"wait": 0.7, "band": 0.3} if family == "autoscaler" else {},
    )


def outcome_of(
    *replays: Played,
    scenario: Scenario | None = None,
    price: Price | None = None,
    missing: tuple[str, ...] = (),
) -> Outcome:
    """Return what these replays come to."""
    scenario = scenario or a_scenario()
    lineup = list(dict.fromkeys(each.contender for each in replays))
    standings = standings_of(lineup, replays, scenario.objective)
    return Outcome(Stage(scenario, 1_772_409_600.0), standings, price, missing)
