"""One contender's replay, and what of it is kept: the figures, the windows, and which constraint decided."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from autoscaler.domain import Decision
from autoscaler.replay.output.lineup import Contender
from autoscaler.replay.record import Record
from autoscaler.replay.report import Report, report
from autoscaler.replay.run import replay
from autoscaler.replay.scenario import Scenario
from autoscaler.replay.windows import WINDOW, Windows, windows

_WINDOWS_MAX = 2000
"""Of a plot; more windows than that are joined."""


@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """What is the same for all who play: the demand and its circumstances, and when it begins.

    Attributes
    ----------
    scenario : Scenario
        What is replayed.
    start_wall_time : float
        Calendar time at the beginning [s since the epoch]; 0 if that is not known.
    gpus_per_replica : int
        [1].
    """

    scenario: Scenario
    start_wall_time: float = 0.0
    gpus_per_replica: int = 1

    @property
    def window(self) -> float:
        """Length of a window of the plots [s]: five minutes, or a multiple where there would be too many."""
        return WINDOW * max(1, -(-self.scenario.duration // (WINDOW * _WINDOWS_MAX)))


@dataclass(frozen=True, slots=True, eq=False)
class Played:
    """What is kept of one replay.

    Attributes
    ----------
    contender, seed
        Who played, over which of the random demands.
    report : Report
        The figures.
    windows : Windows
        For plots.
    replicas_least, replicas_most : int
        Ready, and ready or starting, at any control interval [1].
    bindings : mapping
        Share of the decisions in which each constraint bound, by its name; empty if the policy gives none.
    """

    contender: Contender
    seed: int
    report: Report
    windows: Windows
    replicas_least: int
    replicas_most: int
    bindings: Mapping[str, float]


def play(
    stage: Stage,
    contender: Contender,
    seed: int,
    clairvoyant_gpu_hours: float,
    heard: Callable[[float], None],
) -> Played:
    """Replay one contender; `heard` gets the fraction done, and may raise to end it."""
    scenario = stage.scenario.starting_with(contender.replicas_initial(stage.scenario))
    policy = contender.policy(scenario, stage.start_wall_time)
    record = replay(scenario, policy, seed, stage.start_wall_time, heard)
    return Played(
        contender,
        seed,
        _with_gpus(report(contender.name, record, scenario, clairvoyant_gpu_hours), stage.gpus_per_replica),
        windows(record, scenario, stage.window),
        replicas_least=min(tick[3] for tick in record.ticks),
        replicas_most=max(tick[3] + tick[4] for tick in record.ticks),
        bindings=_bindings(record),
    )


def _with_gpus(figures: Report, gpus_per_replica: int) -> Report:
    """Count GPUs instead of replicas."""
    return replace(
        figures,
        gpu_hours=figures.gpu_hours * gpus_per_replica,
        busy_gpu_hours=figures.busy_gpu_hours * gpus_per_replica,
        clairvoyant_gpu_hours=figures.clairvoyant_gpu_hours * gpus_per_replica,
    )


def _bindings(record: Record) -> dict[str, float]:
    told = Counter(
        decision.binding.value for _, decision in record.decisions if isinstance(decision, Decision)
    )
    return {name: number / told.total() for name, number in told.most_common()}
