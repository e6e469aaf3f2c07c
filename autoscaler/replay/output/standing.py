"""Who stands where: the figures over all seeds, who meets the objective, and who does so cheapest.

A contender meets the objective if enough requests start in time over the whole replay, and next to no five
minutes go wrong: a mean over a day hides the ten minutes that users remember.

Random demand makes figures random. Over several seeds a figure is their mean, with a 95 % confidence interval
by Student's t. All contenders meet the very same requests, so what one costs more than another is compared
seed by seed, which leaves out what the demand itself varies.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import nan, sqrt

import numpy as np
from scipy.stats import t as student

from autoscaler.domain import Objective
from autoscaler.replay.output.lineup import FIXED, OWN, Contender
from autoscaler.replay.output.play import Played, Stage
from autoscaler.replay.output.words import Price
from autoscaler.replay.report import Report

BAD_WINDOWS_MAX = 0.02
"""More bad windows than that, and the objective is not met [1]."""
_CONFIDENCE = 0.95

FIGURES = tuple(name for name in Report.__dataclass_fields__ if name not in ("policy", "requests", "hours"))
"""What is told of each contender: the figures of `Report`."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over seeds, and half the width of its 95 % confidence interval; nan from one seed."""

    mean: float
    half_width: float = nan

    @classmethod
    def of(cls, values: Sequence[float]) -> "Estimate":
        """Estimate the mean of `values`, at least one."""
        n = len(values)
        if n == 1:
            return cls(float(values[0]))
        quantile = float(student.ppf((1 + _CONFIDENCE) / 2, n - 1))
        return cls(float(np.mean(values)), quantile * float(np.std(values, ddof=1)) / sqrt(n))


@dataclass(frozen=True, eq=False)
class Standing:
    """One contender over all seeds.

    Attributes
    ----------
    contender : Contender
        Who.
    played : tuple of Played
        At least one, by seed.
    objective : Objective
        What it is judged by.
    """

    contender: Contender
    played: tuple[Played, ...]
    objective: Objective

    @cached_property
    def figures(self) -> dict[str, Estimate]:
        """Every figure, by its name."""
        return {
            name: Estimate.of([float(getattr(each.report, name)) for each in self.played]) for name in FIGURES
        }

    def mean(self, figure: str) -> float:
        """Return the mean of a figure."""
        return self.figures[figure].mean

    @property
    def name(self) -> str:
        """As it stands in tables."""
        return self.contender.name

    @cached_property
    def multiple(self) -> Estimate:
        """GPU-hours as a multiple of the clairvoyant bound of the same seed [1]; nan if that is nothing."""
        bounds = [each.report.clairvoyant_gpu_hours for each in self.played]
        if min(bounds) <= 0:
            return Estimate(nan)
        return Estimate.of(
            [each.report.gpu_hours / bound for each, bound in zip(self.played, bounds, strict=True)]
        )

    @property
    def meets(self) -> bool:
        """Whether the objective is met, in the mean of the seeds."""
        return (
            self.mean("objective_met") >= self.objective.wait_quantile
            and self.mean("bad_windows") <= BAD_WINDOWS_MAX
        )

    def dearer_than(self, other: "Standing") -> Estimate:
        """Return by which share it costs more than `other` [1]; compared seed by seed."""
        theirs = {each.seed: each.report.gpu_hours for each in other.played}
        ratios = [
            each.report.gpu_hours / theirs[each.seed] - 1
            for each in self.played
            if theirs.get(each.seed, 0.0) > 0
        ]
        return Estimate.of(ratios) if ratios else Estimate(nan)


@dataclass(frozen=True, eq=False)
class Outcome:
    """Everything a replay told.

    Attributes
    ----------
    stage : Stage
        What was replayed.
    standings : tuple of Standing
        All that were finished, in the order of the lineup, every target of a sweep among them.
    price : Price or None
        Of a GPU for an hour.
    missing : tuple of str
        Names of those who were not finished, because Ctrl-C was pressed.
    """

    stage: Stage
    standings: tuple[Standing, ...]
    price: Price | None = None
    missing: tuple[str, ...] = ()

    @property
    def objective(self) -> Objective:
        """What all are judged by."""
        return self.stage.scenario.objective

    @property
    def seeds(self) -> int:
        """How many demands were played [1]."""
        return max(len(each.played) for each in self.standings)

    @property
    def wait_drawn_least(self) -> float:
        """Shorter waits are drawn there, as a logarithm has no 0 and nobody minds them [s]."""
        return max(0.001, min(0.1, self.objective.wait_seconds / 20))

    @cached_property
    def own(self) -> Standing | None:
        """Our controller; None if it was not finished."""
        return next((each for each in self.standings if each.contender.family == OWN), None)

    @cached_property
    def peers(self) -> tuple[Standing, ...]:
        """Everybody else."""
        return tuple(each for each in self.standings if not each.contender.is_own)

    @cached_property
    def tuned(self) -> dict[str, Standing]:
        """Of each family that was swept the best: the cheapest that meets, else the one that misses least."""
        swept = dict.fromkeys(each.contender.family for each in self.peers if each.contender.tried)
        return {
            name: best_of([each for each in self.peers if each.contender.family == name]) for name in swept
        }

    @cached_property
    def shown(self) -> tuple[Standing, ...]:
        """Those that a table shows: who was asked for, and of a sweep the best."""
        best = list(self.tuned.values())
        return tuple(each for each in self.standings if not each.contender.tried or each in best)

    @cached_property
    def cheapest_peer(self) -> Standing | None:
        """The cheapest of the others that meets the objective."""
        meeting = [each for each in self.peers if each.meets]
        return best_of(meeting) if meeting else None

    @cached_property
    def compared(self) -> tuple[Standing, ...]:
        """Those that a picture shows at first: ours, a fixed fleet, and the best of the others."""
        scaling = [each for each in self.shown if each in self.peers and each is not self.fixed]
        best = [best_of(scaling)] if scaling else []
        return tuple(each for each in (self.own, self.fixed, *best) if each is not None)

    @cached_property
    def fixed(self) -> Standing | None:
        """A fixed fleet for the peak."""
        return next((each for each in self.shown if each.contender.family == FIXED), None)


def best_of(standings: Sequence[Standing]) -> Standing:
    """Return the cheapest that meets the objective; if none does, the one with the fewest bad windows."""
    return min(
        standings,
        key=lambda each: (
            not each.meets,
            0.0 if each.meets else each.mean("bad_windows"),
            each.mean("gpu_hours"),
        ),
    )


def standings_of(
    lineup: Sequence[Contender], played: Sequence[Played], objective: Objective
) -> tuple[Standing, ...]:
    """Gather what was played by contender; who never finished a replay does not stand."""
    found = []
    for contender in lineup:
        theirs = tuple(each for each in played if each.contender == contender)
        if theirs:
            found.append(Standing(contender, theirs, objective))
    return tuple(found)
