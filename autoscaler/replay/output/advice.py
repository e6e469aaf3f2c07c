"""What a replay teaches about its traffic, in sentences: what binds, where it went wrong, what helps."""

import numpy as np

from autoscaler.domain.decision import Binding
from autoscaler.replay.output.conflict import conflict_of
from autoscaler.replay.output.play import Played
from autoscaler.replay.output.standing import BAD_WINDOWS_MAX, Outcome, Standing
from autoscaler.replay.output.verdict import objective
from autoscaler.replay.output.words import share
from autoscaler.units import format_duration

_MOSTLY = 0.5
_WORTH_SAYING = 0.05


def advice(outcome: Outcome) -> list[str]:
    """Return what should be known before this is deployed, the most important first."""
    own = outcome.own
    if own is None:
        return []
    first = own.played[0]
    return [*_why_missed(outcome, own, first), *_conflict(outcome, first)]


def _why_missed(outcome: Outcome, own: Standing, played: Played) -> list[str]:
    if own.meets:
        return []
    scenario, windows = outcome.stage.scenario, played.windows
    bad = np.flatnonzero(windows.bad)
    if not len(bad):
        return ["It misses by little in each window; a slightly longer --wait would be met."]
    starting = float(np.mean(windows.replicas_starting[bad] >= _MOSTLY))
    lines = [
        f"{len(bad):,} of {len(windows.start):,} windows are bad, more than the {share(BAD_WINDOWS_MAX)} "
        f"that may be; in {share(starting)} of them replicas were still starting."
    ]
    if starting >= _MOSTLY:
        shorter = format_duration(max(1.0, round(scenario.cold_start_mean / 2)))
        lines.append(
            "A shorter start helps most there (keep images and weights on the machine); try what it is "
            f"worth with --cold-start {shorter}."
        )
    if not len(scenario.history):
        lines.append(
            "Nothing was known before the replay began: give weeks of demand with --history, and the first "
            "day is forecast too."
        )
    return lines


def _conflict(outcome: Outcome, played: Played) -> list[str]:
    """Say how often wait and band exclude one another, and what helps."""
    scenario = outcome.stage.scenario
    found = conflict_of(scenario, played)
    if found is None:
        return []
    low, enough = share(scenario.objective.utilization_low), f"{found.offered_load_enough:.2g}"
    bound = played.bindings.get(Binding.WAIT.value, 0.0)
    binds = f" The wait was what bound in {share(bound)} of the decisions." if bound >= _WORTH_SAYING else ""
    remedies = [f"pool several such demands, so that {enough} slots' worth is there at night too"]
    if scenario.slots_per_replica == 1:
        remedies.append("let a replica serve several at a time, if its server can batch (--slots)")
    remedies.append("fill the troughs with work that can wait")
    remedies.append("or accept a lower band or a longer wait")
    return [
        f"{share(found.share)} of the time wait and band exclude one another: with less than {enough} slots' "
        f"worth of work, {objective(outcome)} takes so many slots that fewer than {low} of them are busy."
        f"{binds}",
        f"What helps: {'; '.join(remedies)}.",
    ]
