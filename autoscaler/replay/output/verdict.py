"""The verdict in sentences: does ours meet the objective, at what cost, and what did the others cost?"""

from math import isfinite

from autoscaler.replay.output.standing import Estimate, Outcome, Standing
from autoscaler.replay.output.words import multiple, share, wait

_SAME = 0.005
"""Costs closer than that are told as the same [1]."""
_MISSES_SHOWN = 3


def headline(outcome: Outcome) -> str:
    """Say in one sentence whether ours meets the objective and at what cost."""
    own = outcome.own
    if own is None:
        return "The replay of autoscaler was not finished: there is no verdict."
    at = f"{multiple(own.multiple.mean)} × the clairvoyant bound"
    if own.meets:
        return f"autoscaler meets the objective ({objective(outcome)}) at {at}{_cost(outcome, own)}."
    return f"autoscaler misses the objective ({objective(outcome)}): {misses(own)}; it costs {at}."


def verdict(outcome: Outcome) -> list[str]:
    """Return the headline, and how the others did: the cheapest that meets, a fixed fleet, who misses."""
    lines = [headline(outcome)]
    if outcome.own is not None:
        lines += _compared(outcome, outcome.own)
    if outcome.missing:
        lines.append(f"Ended early: {', '.join(outcome.missing)} did not finish.")
    return lines


def _compared(outcome: Outcome, own: Standing) -> list[str]:
    lines = [_cheapest(outcome, own)] if outcome.peers else []
    if outcome.fixed is not None and outcome.fixed is not outcome.cheapest_peer:
        lines.append(_against_fixed(own, outcome.fixed))
    return [*lines, *_reacting(outcome, own), *_who_misses(outcome)]


def objective(outcome: Outcome) -> str:
    """Say the objective: "99 % start within 5 s", "90 % start at once"."""
    wanted = outcome.objective
    when = f"within {wait(wanted.wait_seconds)}" if wanted.wait_seconds > 0 else "at once"
    return f"{share(wanted.wait_quantile)} start {when}"


def kind_of_fixed(fixed: Standing) -> str:
    """Say what a fixed fleet is: for the peak, unless its size was given."""
    return "fleet for the peak" if fixed.contender.target is None else "fixed fleet"


def misses(standing: Standing) -> str:
    """Say by how much it misses: "98.2 % in time, bad in 3.1 % of windows"."""
    return (
        f"{share(standing.mean('objective_met'))} start in time, "
        f"and {share(standing.mean('bad_windows'))} of the 5-minute windows are bad"
    )


def dearer(difference: Estimate) -> str:
    """Say how costs differ: "costs 9 % more", "costs 12 ± 2 % less", "costs the same"."""
    if not isfinite(difference.mean):
        return "costs nothing to compare with"
    if abs(difference.mean) < _SAME:
        return "costs the same"
    side = "more" if difference.mean > 0 else "less"
    spread = f" ± {100 * difference.half_width:.2g}" if isfinite(difference.half_width) else ""
    return f"costs {100 * abs(difference.mean):.0f}{spread} % {side}"


def _cost(outcome: Outcome, standing: Standing) -> str:
    return f", for {outcome.price.of(standing.mean('gpu_hours'))}" if outcome.price else ""


def _cheapest(outcome: Outcome, own: Standing) -> str:
    best = outcome.cheapest_peer
    if best is None and len(outcome.peers) > 1:
        return f"None of the {len(outcome.peers)} others meets it."
    if best is None:
        either = "" if own.meets else " either"
        return f"{outcome.peers[0].name} does not meet it{either}: {misses(outcome.peers[0])}."
    who = "The cheapest of the others that meets it" if own.meets else "The cheapest that meets it"
    tuned = " with its target tuned in hindsight" if best.contender.tried else ""
    return f"{who}, {best.name}{tuned}, {dearer(best.dearer_than(own))}."


def _against_fixed(own: Standing, fixed: Standing) -> str:
    met = "which meets it too," if fixed.meets else "which does not meet it,"
    return f"A {kind_of_fixed(fixed)}, {fixed.name}, {met} {dearer(fixed.dearer_than(own))}."


def _reacting(outcome: Outcome, own: Standing) -> list[str]:
    other = next((each for each in outcome.standings if each.contender.is_own and each is not own), None)
    if other is None:
        return []
    met = "meets it and" if other.meets else f"misses it ({misses(other)}) and"
    return [f"Without its forecast autoscaler {met} {dearer(other.dearer_than(own))}."]


def _who_misses(outcome: Outcome) -> list[str]:
    """Name those that were asked for and miss it, the worst first."""
    worst = sorted(
        (each for each in outcome.shown if not each.meets and not each.contender.is_own),
        key=lambda each: -each.mean("bad_windows"),
    )
    if not worst or (len(worst) == 1 and len(outcome.peers) == 1):
        return []
    told = [f"{each.name} ({share(each.mean('bad_windows'))})" for each in worst[:_MISSES_SHOWN]]
    more = f" and {len(worst) - _MISSES_SHOWN} more" if len(worst) > _MISSES_SHOWN else ""
    return [f"Who misses it, and the share of 5-minute windows that are bad: {', '.join(told)}{more}."]
