"""From what is wanted to what is ordered: within what comes, what has an effect, and what others have set.

Sizes say what would serve the demand. Three things may be known that make it idle to order that much: supply
is short, more replicas do no more, or somebody has set another number on purpose. Each only changes the
number of a decision that is made, and says so in its reason.
"""

from dataclasses import replace
from math import inf

from autoscaler.domain import Binding, Decision, Fleet, Hold, Reason, ScaleTo
from autoscaler.scaling.edits import Edit
from autoscaler.scaling.effect import Effect
from autoscaler.scaling.options import DecisionPolicy
from autoscaler.scaling.supply import Supply


def within_effect(decision: Decision, effect: Effect | None) -> Decision:
    """Order no more than so many that more would do more."""
    if effect is None or not isinstance(decision, ScaleTo) or decision.desired <= effect.replicas_max:
        return decision
    current = decision.current
    desired = max(effect.replicas_max, min(current, decision.desired))
    return _changed(decision, desired, current, Reason.NO_EFFECT, Binding.EFFECT)


def within_supply(
    decision: Decision, supply: Supply, fleet: Fleet, policy: DecisionPolicy, *, calm: bool
) -> Decision:
    """Order no more than comes, and a probe; call off what is late and of no use any more.

    Parameters
    ----------
    decision : Decision
        Made as if there were only those that can be counted on.
    supply : Supply
        What can be.
    fleet : Fleet
        As the platform sees it, late ones included.
    policy : DecisionPolicy
        Of which `replicas_min` is kept whatever comes.
    calm : bool
        Whether the load that was ordered for has gone: then what is late is called off at once, and no probe
        is made, although a forecast may still want it.
    """
    there = fleet.ordered + fleet.overdue
    most = max(_most(supply, fleet.ready, calm=calm), policy.replicas_min)
    if decision.desired > most:
        is_over = calm and there > most
        reason = Reason.CALLED_OFF if is_over else Reason.SUPPLY_SHORT
        return _changed(decision, int(most), there, reason, Binding.SUPPLY)
    if there == (decision.current if isinstance(decision, ScaleTo) else decision.desired):
        return decision
    if decision.desired == there:
        return Hold(there, Reason.SUPPLY_LATE, Binding.SUPPLY, decision.numbers)
    if decision.desired > there or (isinstance(decision, ScaleTo) and decision.desired < decision.current):
        return _changed(decision, decision.desired, there, decision.reason, decision.binding)
    return _changed(decision, decision.desired, there, Reason.CALLED_OFF, Binding.SUPPLY)


def within_edit(decision: Decision, edit: Edit | None, fleet: Fleet, policy: DecisionPolicy) -> Decision:
    """Leave the number that somebody else has set, within the limits, as long as it stands."""
    if edit is None or not edit.stands:
        return decision
    desired = min(max(edit.elsewhere, policy.replicas_min), policy.replicas_max)
    return _changed(decision, desired, fleet.ordered + fleet.overdue, Reason.EDITED_ELSEWHERE, Binding.EDIT)


def _most(supply: Supply, ready: int, *, calm: bool) -> float:
    """How many may be ordered, ready ones included [1]."""
    if calm and (supply.late or supply.probes is not None):
        return ready + supply.in_time
    return inf if supply.probes is None else ready + max(supply.in_time, supply.probes)


def _changed(decision: Decision, desired: int, current: int, reason: Reason, binding: Binding) -> Decision:
    """Return the decision for another number."""
    if desired == current:
        return Hold(desired, reason, binding, decision.numbers)
    if isinstance(decision, ScaleTo):
        return replace(decision, desired=desired, current=current, reason=reason, binding=binding)
    return ScaleTo(desired, current, reason, binding, decision.numbers)
