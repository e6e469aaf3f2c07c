"""The answer of the control path: scale to a number of replicas, or hold; with reasons and numbers.

One value is read by all: the platform takes `desired`, the log and the dashboard the numbers, a
person the sentence that `str()` gives.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from math import isnan


class Reason(StrEnum):
    """Why this decision, and not the other."""

    DEMAND_RISES = "demand_rises"
    DEMAND_FALLS = "demand_falls"
    IDLE = "idle"
    REPLICAS_LOST = "replicas_lost"
    """Fewer are there than were ordered, and they are needed."""
    WITHIN_BAND = "within_band"
    FEWEST_FOR_WAIT = "fewest_for_wait"
    """Less busy than the band asks, but fewer would not keep the wait objective."""
    SOON_NEEDED = "soon_needed"
    """Fewer would do now, but not for the whole of a cold start and the hold after it."""
    RECENTLY_NEEDED = "recently_needed"
    """Fewer would do from now on, but more were needed within the hold that has just passed."""
    SURVIVORS_OVERLOADED = "survivors_overloaded"
    """Fewer would do by the forecast, but those that stay would be busier than the band allows."""
    AT_REPLICAS_MIN = "at_replicas_min"
    AT_REPLICAS_MAX = "at_replicas_max"
    METRICS_LOST = "metrics_lost"
    PARTLY_BLIND = "partly_blind"
    """Fewer would do by what was seen, but not all of the demand was."""
    SERVICE_TIME_UNKNOWN = "service_time_unknown"
    """No service has ended yet; sized by the requests in flight."""
    SUPPLY_SHORT = "supply_short"
    """More is needed, but what is ordered does not come: only a probe is."""
    SUPPLY_LATE = "supply_late"
    """More is needed and was ordered already; it should have come long ago."""
    CALLED_OFF = "called_off"
    """What was ordered and did not come is not needed any more."""
    NO_EFFECT = "no_effect"
    """Requests wait, but with more replicas no more were served."""
    EDITED_ELSEWHERE = "edited_elsewhere"
    """Somebody else has set another number, which stands for a while."""


class Binding(StrEnum):
    """Which constraint asked for the most servers."""

    WAIT = "wait"
    BAND = "band"
    BACKLOG = "backlog"
    IN_FLIGHT = "in_flight"
    REPLICAS_MIN = "replicas_min"
    REPLICAS_MAX = "replicas_max"
    STEP = "step"
    SUPPLY = "supply"
    EFFECT = "effect"
    EDIT = "edit"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Numbers:
    """What the decision was made of. Not-a-number marks what was not known.

    Attributes
    ----------
    arrival_rate : float
        At the door, over the last minutes [1/s].
    forecast_rate, forecast_rate_p10, forecast_rate_p90 : float
        Predicted one lead time ahead: what is sized for, and 0.1 and 0.9 quantiles [1/s].
    service_time_mean, service_scv, arrival_scv : float
        E[S] [s], its squared coefficient of variation, and variance / mean of counts of arrivals [1].
    offered_load : float
        forecast_rate * service_time_mean [erlang].
    lead_time : float
        From a decision to a ready replica, a high quantile [s].
    servers_for_wait, servers_for_band, servers_for_backlog : int
        Slots that each constraint asks for, one lead time ahead [1].
    replicas_up, replicas_aim, replicas_down : int
        At least so many are needed one lead time ahead; the best number then; no more than so many over all
        of it [1].
    utilization_expected : float
        offered_load / slots of `desired` replicas [1].
    replicas_as_forecast : int
        Where to go had the last minutes been as forecast, with no burst and no lull [1].
    next_change_in : float
        When another number than `desired` will be asked for, if all comes as forecast [s]; not known, or not
        within a twelfth of a season: NaN.
    replicas_wanted : int
        What would be desired if all that is ordered came, and had an effect, and nobody else had a say [1].
    replicas_late : int
        Ordered, and not come in their time [1].
    supply_probability : float
        That an order comes, by those of late [1].
    supply_delay : float
        From an order to its replica, the longest of late [s].
    fleet_growth, throughput_gain : float
        How much more replicas there are than before, and how much more is served, as shares of before, where
        growth has had no effect [1].
    asked_here, asked_elsewhere : int or None
        What was asked for here, and what somebody else has asked for instead [1]; None if nobody has.
    substituted_share : float
        Of this pool's demand, what another pool stands in for from now on [1]; NaN unless supply is short.
    standing_in_rate : float
        Arrivals of other pools, which are short, that this one stands in for [1/s].
    """

    arrival_rate: float = float("nan")
    forecast_rate: float = float("nan")
    forecast_rate_p10: float = float("nan")
    forecast_rate_p90: float = float("nan")
    service_time_mean: float = float("nan")
    service_scv: float = float("nan")
    arrival_scv: float = float("nan")
    offered_load: float = float("nan")
    lead_time: float = float("nan")
    servers_for_wait: int = 0
    servers_for_band: int = 0
    servers_for_backlog: int = 0
    replicas_up: int = 0
    replicas_aim: int = 0
    replicas_down: int = 0
    utilization_expected: float = float("nan")
    replicas_as_forecast: int = 0
    next_change_in: float = float("nan")
    replicas_wanted: int = 0
    replicas_late: int = 0
    supply_probability: float = float("nan")
    supply_delay: float = float("nan")
    fleet_growth: float = float("nan")
    throughput_gain: float = float("nan")
    asked_here: int | None = None
    asked_elsewhere: int | None = None
    substituted_share: float = float("nan")
    standing_in_rate: float = float("nan")


@dataclass(frozen=True, slots=True)
class ScaleTo:
    """Change the fleet to `desired` replicas (ready and starting), from `current`."""

    desired: int
    current: int
    reason: Reason
    binding: Binding
    numbers: Numbers = field(default_factory=Numbers)

    def __str__(self) -> str:
        verb = "Scale up" if self.desired > self.current else "Scale down"
        return f"{verb} from {self.current} to {_replicas(self.desired)}: {_because(self)}"


@dataclass(frozen=True, slots=True)
class Hold:
    """Keep the fleet as it is, at `desired` replicas (ready and starting)."""

    desired: int
    reason: Reason
    binding: Binding
    numbers: Numbers = field(default_factory=Numbers)

    def __str__(self) -> str:
        return f"Hold {_replicas(self.desired)}: {_because(self)}"


Decision = ScaleTo | Hold


def _in_minutes(seconds: float) -> str:
    return "within a minute" if seconds < 60.0 else f"in about {seconds / 60:.0f} min"


def _replicas(count: int) -> str:
    return f"{count} replica" if count == 1 else f"{count} replicas"


def _slots(count: int) -> str:
    return f"{count} slot" if count == 1 else f"{count} slots"


_REASON_IN_WORDS = {
    Reason.DEMAND_RISES: "demand rises",
    Reason.DEMAND_FALLS: "demand falls",
    Reason.IDLE: "nothing arrives",
    Reason.REPLICAS_LOST: "replicas were lost that are needed",
    Reason.FEWEST_FOR_WAIT: "less busy than the band asks, but fewer would not keep the wait objective",
    Reason.WITHIN_BAND: "utilization stays within the band",
    Reason.SOON_NEEDED: "fewer would do now, but more are needed before a new one could start",
    Reason.RECENTLY_NEEDED: "fewer would do now, but more were needed lately (scale_down_hold)",
    Reason.SURVIVORS_OVERLOADED: "with fewer, those that stay would be too busy",
    Reason.AT_REPLICAS_MIN: "no fewer are allowed",
    Reason.AT_REPLICAS_MAX: "no more are allowed",
    Reason.METRICS_LOST: "no measurement came, and what is not known is not changed",
    Reason.PARTLY_BLIND: "fewer would do by what is seen, but a part of the demand cannot be",
    Reason.SERVICE_TIME_UNKNOWN: "no request has been served yet; sized by those in flight",
    Reason.SUPPLY_SHORT: "more are needed, but what is ordered does not come, so only a probe is",
    Reason.SUPPLY_LATE: "more are needed and have been ordered, but have not come in their time",
    Reason.CALLED_OFF: "what was ordered and did not come is not needed any more",
    Reason.NO_EFFECT: "requests wait, but more replicas served no more of them",
    Reason.EDITED_ELSEWHERE: "somebody else has set this number, and it stands for a while (edit_hold)",
}

_BINDING_IN_WORDS = {
    Binding.WAIT: "the wait objective binds",
    Binding.BAND: "the utilization band binds",
    Binding.BACKLOG: "the backlog binds",
    Binding.IN_FLIGHT: "the requests in flight bind",
    Binding.REPLICAS_MIN: "the least number of replicas binds",
    Binding.REPLICAS_MAX: "the greatest number of replicas binds",
    Binding.STEP: "the step limit binds",
    Binding.SUPPLY: "the supply binds",
    Binding.EFFECT: "what all replicas share binds",
    Binding.EDIT: "somebody else's number binds",
    Binding.NONE: "",
}


def _reason_in_words(decision: Decision) -> str:
    if not decision.desired and decision.reason in (Reason.WITHIN_BAND, Reason.SERVICE_TIME_UNKNOWN):
        return "nobody asks; it sleeps"
    return _REASON_IN_WORDS[decision.reason]


def _rounded(number: float) -> str:
    """Say a rate or a load; what is next to nothing without its digits."""
    return "<0.01" if 0.0 < number < 0.01 else f"{number:.3g}"


def _because(decision: Decision) -> str:
    """Put the reason, the numbers and the binding constraint into one sentence."""
    numbers, parts = decision.numbers, [_reason_in_words(decision)]
    if numbers.offered_load == numbers.offered_load:  # not NaN
        parts.append(
            f"{_rounded(numbers.forecast_rate)}/s expected in {numbers.lead_time:.3g} s "
            f"(now {_rounded(numbers.arrival_rate)}/s) x {numbers.service_time_mean:.3g} s "
            f"= {_rounded(numbers.offered_load)} erlangs"
        )
        parts.append(
            f"the band asks {_slots(numbers.servers_for_band)}, the wait {numbers.servers_for_wait}"
            + (f", the backlog {numbers.servers_for_backlog}" if numbers.servers_for_backlog else "")
        )
    if words := _BINDING_IN_WORDS[decision.binding]:
        parts.append(words)
    parts += _beyond_sizes(decision)
    if numbers.utilization_expected == numbers.utilization_expected:
        parts.append(f"{numbers.utilization_expected:.0%} busy expected")
    if numbers.replicas_as_forecast not in (0, numbers.replicas_aim):
        parts.append(
            f"the best is {numbers.replicas_aim}, or {numbers.replicas_as_forecast} "
            "had the last minutes been as forecast"
        )
    if not isnan(numbers.next_change_in):
        parts.append(f"the next change is expected {_in_minutes(numbers.next_change_in)}")
    return "; ".join(parts) + "."


def _beyond_sizes(decision: Decision) -> list[str]:
    """What is known of supply, effect, and others who have a say."""
    numbers, parts = decision.numbers, []
    if numbers.replicas_wanted not in (0, decision.desired):
        parts.append(f"{_replicas(numbers.replicas_wanted)} would be asked for otherwise")
    if numbers.replicas_late:
        share = numbers.supply_probability
        chance = "" if isnan(share) else f", and one comes with a probability of {share:.0%}"
        parts.append(f"late orders: {numbers.replicas_late}{chance}")
    if not isnan(numbers.throughput_gain):
        parts.append(
            f"with {numbers.fleet_growth:.0%} more replicas {_more(numbers.throughput_gain)} was served: "
            "look for what they share"
        )
    if numbers.substituted_share > 0:
        parts.append(f"another pool stands in for {numbers.substituted_share:.0%} of the demand")
    if not isnan(numbers.standing_in_rate):
        parts.append(f"it stands in for {_rounded(numbers.standing_in_rate)}/s of pools that are short")
    if numbers.asked_elsewhere is not None:
        fate = "" if decision.desired == numbers.asked_elsewhere else ", which is not left so"
        parts.append(
            f"somebody else asked for {numbers.asked_elsewhere} instead of {numbers.asked_here}{fate}"
        )
    return parts


def _more(gain: float) -> str:
    return f"{gain:.0%} more" if gain >= 0.005 else "no more"
