"""The control path on one page: observe, estimate, forecast, size, decide.

A controller is a pure machine: the same observations, fleets and times give the same decisions, in
production, in replay and in a test. It never reads a clock and never fits a model: a fit that is due is
handed to the driver, which runs it where it likes and gives back what came of it.
"""

from collections.abc import Callable
from dataclasses import replace
from math import floor, isnan, nan

import numpy as np
from numpy.typing import NDArray

from autoscaler.domain import (
    Binding,
    Decision,
    Fleet,
    Hold,
    Numbers,
    Objective,
    Observation,
    Reason,
    ScaleTo,
)
from autoscaler.scaling.decide import Wanted, decide
from autoscaler.scaling.edits import EditWatch
from autoscaler.scaling.effect import EffectWatch
from autoscaler.scaling.estimate import Estimate, Estimator
from autoscaler.scaling.fit import Fitted
from autoscaler.scaling.forecast import Demand, DemandForecast
from autoscaler.scaling.limits import within_edit, within_effect, within_supply
from autoscaler.scaling.options import DecisionPolicy
from autoscaler.scaling.size import Need, need, replicas_for, servers_for_backlog
from autoscaler.scaling.supply import Supply, SupplyWatch
from autoscaler.scaling.window import RecentQuantile
from forecasting.chosen import Chosen
from forecasting.forecaster import Forecaster

_RECENT_QUANTILE = 0.75
"""What was wanted recently, without the jitter of a few intervals."""
_HORIZON = 2
"""Forecast intervals ahead at which forecasters are compared: a cold start of minutes [1]."""
_CALM = 0.5
"""The load that was ordered for has gone if what there is now is less than this share of it [1]."""
_WORTH_A_REPLICA = 1.0
"""Arrivals expected over lead time and hold, below which an idle pool may go to zero [requests]."""


class Controller:
    """Turns one interval's observation into a decision.

    Parameters
    ----------
    objective : Objective
        The wait and the band to keep.
    policy : DecisionPolicy, optional
        Limits, memories and the season.
    forecaster : Forecaster, optional
        Not fitted yet; by default the one that does best on the history so far, at each fit anew.
    """

    def __init__(
        self, objective: Objective, policy: DecisionPolicy | None = None, forecaster: Forecaster | None = None
    ) -> None:
        self._objective = objective
        self._policy = policy or DecisionPolicy()
        self._estimator = Estimator(self._policy.service_memory)
        self._forecast = DemandForecast(
            self._policy, forecaster or Chosen(self._policy.season_length, horizon=_HORIZON)
        )
        self._recently = RecentQuantile(self._policy.scale_down_hold, _RECENT_QUANTILE)
        self._supply = SupplyWatch()
        self._effect = EffectWatch(objective.wait_seconds)
        self._edits = EditWatch(self._policy.edit_hold)
        self._first_step: float | None = None
        self._last_step: float | None = None
        self._last_arrival: float | None = None
        self._blind_since: float | None = None
        self._desired = 0
        self._ordered = 0

    def warm(self, history: NDArray[np.float64], interval: float, end_wall_time: float) -> None:
        """Learn from before the start.

        Parameters
        ----------
        history : ndarray, shape (n_intervals,)
            Arrivals in each history interval, oldest first; NaN where none were measured [requests].
        interval : float
            Length of a history interval [s].
        end_wall_time : float
            Calendar time at the end of the last one [s since the epoch].
        """
        self._forecast.warm(history, interval, end_wall_time)

    def step(self, observation: Observation | None, fleet: Fleet, now: float) -> Decision:
        """Turn one interval's observation into `ScaleTo` or `Hold`, with its reasons.

        Parameters
        ----------
        observation : Observation or None
            None if the interval could not be measured: then nothing is changed.
        fleet : Fleet
            As the platform sees it now.
        now : float
            [s], monotonic.
        """
        elapsed = 0.0 if self._last_step is None else now - self._last_step
        self._last_step = now
        if self._first_step is None:
            self._first_step = now
        self._forecast.update(observation, elapsed)
        supply = self._supply.update(fleet, now)
        if observation is None:
            self._blind_since = now if self._blind_since is None else self._blind_since
            return _without_sight(fleet, self._policy.replicas_min)
        self._see_again(now)
        if observation.arrivals or observation.in_flight or self._last_arrival is None:
            self._last_arrival = now
        estimate = self._estimator.update(observation)
        lead_time = fleet.cold_start_p90 + observation.interval
        self._forecast.learn_error(observation, lead_time, now)
        demand = self._forecast.demand(lead_time, self._policy.scale_down_hold)
        counted = replace(fleet, starting=supply.credited)
        wanted, numbers = self._want(demand, estimate, observation, counted, now)
        wanted = replace(wanted, lost=wanted.lost and not supply.late)
        decision = decide(wanted, counted, self._objective, self._policy, numbers)
        decision = self._within_limits(decision, observation, fleet, supply, now)
        self._desired, self._ordered = decision.desired, fleet.ordered
        return self._with_outlook(decision, fleet.slots_per_replica)

    def refit_due(self, now: float) -> Callable[[], Fitted] | None:
        """Hand out a fit if one is due: a picklable callable without arguments, for `adopt`."""
        return self._forecast.refit_due(now)

    def adopt(self, fitted: Fitted, now: float) -> None:
        """Take over what a job of `refit_due` returned."""
        self._forecast.adopt(fitted)

    def _want(
        self, demand: Demand, estimate: Estimate, observation: Observation, fleet: Fleet, now: float
    ) -> tuple[Wanted, Numbers]:
        """Size for one lead time ahead and for all of it, and put it in replicas."""
        lead_time = fleet.cold_start_p90 + observation.interval
        offered_load = demand.lead.predicted * estimate.service_time_mean
        catch_up_time = max(self._policy.catch_up_time, lead_time)
        backlog = servers_for_backlog(observation.queue_depth, offered_load, estimate, catch_up_time)
        idle = self._idle(now)
        if idle and demand.peak.predicted * (lead_time + self._policy.scale_down_hold) < _WORTH_A_REPLICA:
            ahead = throughout = as_forecast = _NOTHING
        elif estimate.service_known:
            ahead = need(demand.lead, estimate, self._objective, backlog)
            throughout = need(demand.peak, estimate, self._objective, backlog)
            as_forecast = need(demand.as_forecast, estimate, self._objective)
        else:
            ahead = throughout = as_forecast = _need_of(observation.in_flight, fleet, self._objective)
        slots = fleet.slots_per_replica
        enough = replicas_for(throughout.aim, slots)
        self._recently.add(enough, now)
        wanted = Wanted(
            least=replicas_for(ahead.least, slots),
            aim=replicas_for(ahead.aim, slots),
            enough=enough,
            most=max(enough, throughout.most // slots),
            recently=self._recently.value() if self._watched_a_hold(now) else max(enough, fleet.ordered),
            busy=observation.busy_slots_mean + observation.queue_depth,
            idle=idle,
            service_known=estimate.service_known,
            lost=fleet.ordered < min(self._desired, self._ordered),  # not what nobody carried out
            blind=observation.is_partial,
            binding_up=ahead.binding,
            binding_down=throughout.binding,
        )
        numbers = Numbers(
            arrival_rate=estimate.arrival_rate,
            forecast_rate=demand.lead.predicted,
            forecast_rate_p10=demand.lead.quantile(0.1),
            forecast_rate_p90=demand.lead.quantile(0.9),
            service_time_mean=estimate.service_time_mean,
            service_scv=estimate.service_scv,
            offered_load=offered_load,
            lead_time=lead_time,
            servers_for_wait=ahead.wait,
            servers_for_band=ahead.band,
            servers_for_backlog=backlog,
            arrival_scv=estimate.arrival_scv,
            replicas_up=wanted.least,
            replicas_aim=wanted.aim,
            replicas_as_forecast=replicas_for(as_forecast.aim, slots),
            replicas_down=wanted.most,
        )
        return wanted, numbers

    def _within_limits(
        self, decision: Decision, observation: Observation, fleet: Fleet, supply: Supply, now: float
    ) -> Decision:
        """Order what comes and has an effect, and say what stands in the way of more."""
        effect = self._effect.update(observation, fleet.ready, now)
        edit = self._edits.update(fleet, now)
        numbers = replace(
            decision.numbers,
            replicas_wanted=decision.desired,
            replicas_late=supply.late,
            supply_probability=supply.probability,
            supply_delay=supply.delay,
            fleet_growth=nan if effect is None else effect.fleet_growth,
            throughput_gain=nan if effect is None else effect.throughput_gain,
            asked_here=None if edit is None else edit.here,
            asked_elsewhere=None if edit is None else edit.elsewhere,
        )
        decision = within_effect(replace(decision, numbers=numbers), effect)
        calm = self._is_calm(numbers, observation, fleet)
        decision = within_supply(decision, supply, fleet, self._policy, calm=calm)
        return within_edit(decision, edit, fleet, self._policy)

    def _is_calm(self, numbers: Numbers, observation: Observation, fleet: Fleet) -> bool:
        """Whether the load of now is far below what is sized for, and those that are ready suffice for it."""
        if observation.is_partial or isnan(numbers.offered_load):
            return not (observation.is_partial or observation.in_flight)
        arriving = observation.arrivals / observation.interval * numbers.service_time_mean
        present = max(arriving, observation.in_flight)
        room = fleet.ready * fleet.slots_per_replica * self._objective.utilization_high
        return present <= room and present < _CALM * numbers.offered_load

    def _with_outlook(self, decision: Decision, slots_per_replica: int) -> Decision:
        """Say how busy what was decided will be, and until when it will do."""
        numbers = decision.numbers
        slots = decision.desired * slots_per_replica
        if not slots or isnan(numbers.offered_load):
            return decision
        expected = min(1.0, numbers.offered_load / slots)
        # Over the next while sizes grow about in proportion to the load; they are whole, so by half of one.
        highest = numbers.forecast_rate * (decision.desired + 0.5) / max(numbers.replicas_up, 1)
        fewer = max(numbers.replicas_down, numbers.replicas_aim, 1)
        lowest = numbers.forecast_rate * min((decision.desired - 0.5) / fewer, 1.0)
        next_change = self._forecast.leaves(lowest, highest, numbers.lead_time)
        return replace(
            decision,
            numbers=replace(numbers, utilization_expected=expected, next_change_in=next_change),
        )

    def _see_again(self, now: float) -> None:
        """Begin to watch anew if nothing was seen for a whole hold: the first look lets nothing go."""
        if self._blind_since is not None and now - self._blind_since >= self._policy.scale_down_hold:
            self._first_step = self._last_arrival = now
        self._blind_since = None

    def _watched_a_hold(self, now: float) -> bool:
        """Whether enough has been seen to let go: what a predecessor left running is kept till then."""
        return self._first_step is not None and now - self._first_step >= self._policy.scale_down_hold

    def _idle(self, now: float) -> bool:
        """Whether nothing has come and nothing was there for a whole hold."""
        return self._last_arrival is not None and now - self._last_arrival >= self._policy.scale_down_hold


_NOTHING = Need(wait=0, band=0, band_aim=0, band_most=0)


def _without_sight(fleet: Fleet, replicas_min: int) -> Decision:
    """While nothing is known of the demand: keep what there is, and never fewer than are allowed.

    Where only the replicas themselves can tell of the demand, nobody could, were there none.
    """
    asked = fleet.ordered + fleet.overdue
    if asked < replicas_min:
        return ScaleTo(replicas_min, fleet.ordered, Reason.AT_REPLICAS_MIN, Binding.REPLICAS_MIN)
    return Hold(asked, Reason.METRICS_LOST, Binding.NONE)


def _need_of(in_flight: int, fleet: Fleet, objective: Objective) -> Need:
    """While no service time is known: room for the requests in flight, and no less than there is."""
    room = floor(in_flight / objective.utilization_high)  # for one request one slot
    there = fleet.ordered * fleet.slots_per_replica
    return Need(wait=0, band=room, band_aim=room, band_most=max(room, there))
