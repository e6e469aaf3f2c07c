"""From sizes to a decision. Up at once, down with care, and inside the band: hold.

Going up looks one lead time ahead: a replica ordered now is of use then, and those already starting
are credited. Going down asks for more agreement, because what is let go cannot be had back sooner than
a lead time: the whole of [now, now + lead + hold] must do with fewer, the recent past must have wanted
fewer, and those that stay must not be too busy with what is in flight right now. Any rule may raise;
all must agree to lower. The band is the hysteresis, so there is no tolerance to tune.
"""

from dataclasses import dataclass
from math import ceil

from autoscaler.domain import Binding, Decision, Fleet, Hold, Numbers, Objective, Reason, ScaleTo
from autoscaler.scaling.options import DecisionPolicy


@dataclass(frozen=True, slots=True)
class Wanted:
    """Replicas wanted, as `decide` weighs them.

    Attributes
    ----------
    least, aim : int
        One lead time ahead: not to be undercut; where to go if it would be.
    enough, most : int
        Over the whole of the lead time and the hold: what suffices; the most that is not too much.
    recently : int
        What sufficed over the recent past.
    busy : float
        Slots in use or waited for, now [1].
    idle : bool
        Nothing has come or is there for a whole hold.
    service_known : bool
        Whether the sizes rest on a service time, or only on the requests in flight.
    lost : bool
        Whether fewer are there than the last decision wanted.
    blind : bool
        Whether a part of the demand could not be seen.
    binding_up, binding_down : Binding
        What asked for `aim`, and for `enough`.
    """

    least: int
    aim: int
    enough: int
    most: int
    recently: int
    busy: float
    idle: bool
    service_known: bool
    lost: bool
    binding_up: Binding
    binding_down: Binding
    blind: bool = False


def decide(
    wanted: Wanted, fleet: Fleet, objective: Objective, policy: DecisionPolicy, numbers: Numbers
) -> Decision:
    """Weigh what is wanted against what is there, within the limits of the policy."""
    ordered = fleet.ordered
    if wanted.least > ordered or ordered < policy.replicas_min:
        return _up(wanted, fleet, policy, numbers)
    if wanted.most < ordered or ordered > policy.replicas_max:
        return _down(wanted, fleet, objective, policy, numbers)
    return Hold(ordered, _why_kept(wanted, fleet, objective, numbers), wanted.binding_up, numbers)


def _why_kept(wanted: Wanted, fleet: Fleet, objective: Objective, numbers: Numbers) -> Reason:
    if not wanted.service_known:
        return Reason.SERVICE_TIME_UNKNOWN
    slots = fleet.ordered * fleet.slots_per_replica
    too_idle = numbers.offered_load < objective.utilization_low * slots
    return Reason.FEWEST_FOR_WAIT if too_idle else Reason.WITHIN_BAND


def _up(wanted: Wanted, fleet: Fleet, policy: DecisionPolicy, numbers: Numbers) -> Decision:
    ordered, target = fleet.ordered, max(wanted.aim, wanted.least)
    binding, reason = wanted.binding_up, Reason.REPLICAS_LOST if wanted.lost else Reason.DEMAND_RISES
    desired = max(target, policy.replicas_min)
    if desired > target:
        binding, reason = Binding.REPLICAS_MIN, Reason.AT_REPLICAS_MIN
    if policy.step_up_max is not None and desired > ordered + policy.step_up_max:
        desired, binding = ordered + policy.step_up_max, Binding.STEP
    if desired > policy.replicas_max:
        desired, binding, reason = policy.replicas_max, Binding.REPLICAS_MAX, Reason.AT_REPLICAS_MAX
    if desired == ordered:
        return Hold(ordered, reason, binding, numbers)
    if desired < ordered:  # more than the limit runs already, and demand asks for more still
        return ScaleTo(desired, ordered, Reason.AT_REPLICAS_MAX, Binding.REPLICAS_MAX, numbers)
    return ScaleTo(desired, ordered, reason, binding, numbers)


def _down(
    wanted: Wanted, fleet: Fleet, objective: Objective, policy: DecisionPolicy, numbers: Numbers
) -> Decision:
    ordered = fleet.ordered
    survivors = ceil(wanted.busy / fleet.slots_per_replica / objective.utilization_high - 1e-9)
    recently = 0 if wanted.idle else wanted.recently
    desired = max(wanted.enough, wanted.least, recently, survivors)
    binding, reason = wanted.binding_down, Reason.IDLE if wanted.idle else Reason.DEMAND_FALLS
    if policy.step_down_max is not None and desired < ordered - policy.step_down_max:
        desired, binding = ordered - policy.step_down_max, Binding.STEP
    if desired < policy.replicas_min:
        desired, binding = policy.replicas_min, Binding.REPLICAS_MIN
        reason = Reason.AT_REPLICAS_MIN if desired >= ordered else reason
    if ordered > policy.replicas_max:
        return ScaleTo(policy.replicas_max, ordered, Reason.AT_REPLICAS_MAX, Binding.REPLICAS_MAX, numbers)
    if desired < ordered and wanted.blind:
        return Hold(ordered, Reason.PARTLY_BLIND, binding, numbers)
    if desired < ordered:
        return ScaleTo(desired, ordered, reason, binding, numbers)
    if reason is Reason.AT_REPLICAS_MIN:
        return Hold(ordered, reason, binding, numbers)
    return Hold(ordered, _why_not_lowered(wanted, survivors, recently), binding, numbers)


def _why_not_lowered(wanted: Wanted, survivors: int, recently: int) -> Reason:
    """The rule that asked for the most is the one that would not agree."""
    if survivors > max(wanted.enough, wanted.least, recently):
        return Reason.SURVIVORS_OVERLOADED
    return Reason.RECENTLY_NEEDED if recently > max(wanted.enough, wanted.least) else Reason.SOON_NEEDED
