"""The driver on a virtual clock: arrivals, ends of service, starts and control ticks in order of time.

It does what the live drivers do and no more: reports events to the dispatcher, facts to the observer, one
observation per decision to the policy, and the decision to the (simulated) platform. Nobody is refused, and
nobody's patience ends, so the dispatcher has nothing to do at times at which nothing happens.

A policy decides as often as it says, and some decide soon after an arrival that finds no replica, too. The
record's ticks come at the control interval of the scenario all the same, so that policies with different
rhythms are judged alike; the observer is closed whenever either is due, and a policy sees the pieces since
its last decision joined into one observation.

A replica may be lost with requests on it. As with the live proxy, whose client is then told 502 since
nobody knows what was executed, such a request is not sent again from here: its slot is freed, and the client
is taken to ask again at once. That is one more arrival at the door, behind all who wait, and what its service
had achieved is gone. In the record it remains one request, which waits until the start of the service that
ends, so an interruption shows as a wait.
"""

from collections.abc import Callable
from math import ceil

import numpy as np
from numpy.typing import NDArray

from autoscaler.dispatch.actions import Send
from autoscaler.dispatch.admission import QueueOptions
from autoscaler.dispatch.dispatcher import Dispatcher
from autoscaler.dispatch.events import (
    Arrived,
    CallEnd,
    Event,
    ReplicaDraining,
    ReplicaLost,
    ReplicaReady,
    SlotFreed,
)
from autoscaler.dispatch.slots import Lease
from autoscaler.domain import Fleet, Observation, Request
from autoscaler.replay.agenda import FOREVER, Agenda
from autoscaler.replay.interval import joined
from autoscaler.replay.policies.policy import Policy, WokenByArrivals
from autoscaler.replay.record import Record
from autoscaler.replay.replicas import SimulatedFleet, SimulatedReplica, State
from autoscaler.replay.scenario import Scenario
from autoscaler.replay.service.choice import service_law
from autoscaler.scaling.observe import IntervalObserver

_SAME_TIME = 1e-6
"""Ticks and decisions closer than this are due together [s]."""


def replay(
    scenario: Scenario,
    policy: Policy,
    seed: int = 0,
    start_wall_time: float = 0.0,
    progress: Callable[[float], None] = lambda fraction: None,
) -> Record:
    """Run `policy` over the demand of `scenario`; the same seed gives the same record.

    `progress` hears the fraction done, in [0, 1], about once per hundredth.
    """
    demand_rng, fleet_rng = np.random.default_rng(seed).spawn(2)
    arrivals = scenario.arrival_times(demand_rng)
    work = scenario.work(len(arrivals), demand_rng)
    run = _Run(scenario, policy, arrivals, work, fleet_rng, start_wall_time)
    run.start()
    step = scenario.control_interval
    decision_step = policy.interval or step
    end = scenario.duration
    ticks = max(1, ceil(end / step - _SAME_TIME))
    decisions = 1
    for tick in range(1, ticks + 1):
        tick_at = min(tick * step, end)
        while (decision_at := decisions * decision_step) < tick_at - _SAME_TIME:
            run.advance(decision_at)
            run.decide(decision_at)
            decisions += 1
        run.advance(tick_at)
        run.tick(tick_at)
        if decision_at <= tick_at + _SAME_TIME:
            run.decide(tick_at)
            decisions += 1
        if tick % max(1, ticks // 100) == 0:
            progress(tick / ticks)
    return run.finish(end)


class _Run:
    """State of one replay; what `service.law.Engine` asks for."""

    def __init__(
        self,
        scenario: Scenario,
        policy: Policy,
        arrivals: NDArray[np.float64],
        work: NDArray[np.float64],
        rng: np.random.Generator,
        start_wall_time: float,
    ) -> None:
        self._scenario, self._policy = scenario, policy
        self._wake_delay = policy.wake_delay if isinstance(policy, WokenByArrivals) else FOREVER
        self._is_woken = False
        self._arrivals: list[float] = arrivals.tolist()
        self._waits = [FOREVER] * len(arrivals)
        self._next = 0
        self._rng = rng
        self._start_wall_time = start_wall_time
        self._dispatcher = Dispatcher(QueueOptions(requests_max=10**9, bytes_max=10**18))
        self._observer = IntervalObserver(0.0)
        self._closed_at = 0.0
        self._since_tick: list[Observation] = []
        self._since_decision: list[Observation] = []
        self._fleet = SimulatedFleet(scenario, rng)
        self._agenda = Agenda()
        self.at = self._agenda.at
        self._law = service_law(scenario, work.tolist(), self)
        self._interruptions = self._broken = 0
        self.record = Record(arrivals, np.empty(0))

    # -- time

    def start(self) -> None:
        """Begin with the replicas that are there."""
        for replica in self._fleet.launch(self._scenario.replicas_initial, 0.0, at_once=True):
            if replica.ready_at == 0.0:
                self._ready(replica, 0.0)
        for at, supply_max in self._scenario.supply_changes:
            self.at(at, self._supplied, supply_max)

    def advance(self, until: float) -> None:
        """Let everything happen that is due up to `until` [s]."""
        arrivals, run_agenda = self._arrivals, self._agenda.run
        while self._next < len(arrivals) and (arrival := arrivals[self._next]) <= until:
            run_agenda(arrival)
            self._arrive(self._next, arrival)
            self._next += 1
        run_agenda(until)

    def tick(self, now: float) -> None:
        """Write down the control interval that ends now."""
        self._close(now)
        fleet = self._fleet.fleet()
        busy = joined(self._since_tick).busy_slots_mean
        self._since_tick.clear()
        slots = fleet.ready * fleet.slots_per_replica
        self.record.ticks.append((now, busy, slots, fleet.ready, fleet.starting, fleet.draining))

    def decide(self, now: float) -> None:
        """Ask the policy, and move the fleet; nothing if it was asked at this very moment."""
        self._close(now)
        if not self._since_decision:
            return
        observation = joined(self._since_decision)
        self._since_decision.clear()
        fleet = self._fleet.fleet()
        decision = self._policy.decide(observation, fleet, now)
        if decision is None:
            return
        self.record.decisions.append((now, decision))
        self._scale_to(decision if isinstance(decision, int) else decision.desired, fleet, now)

    def finish(self, now: float) -> Record:
        """Return the record of the time up to now.

        Who waits now is followed for as long as the objective allows, with the fleet as it is, so that
        whether it was kept is known of everybody.
        """
        record, agenda = self.record, self._agenda
        record.replica_seconds = self._fleet.replica_seconds(now)
        record.interruptions, record.broken = self._interruptions, self._broken
        too_late = now + self._scenario.objective.wait_seconds
        while self._dispatcher.waiting and agenda.next_time <= too_late:
            agenda.run(agenda.next_time)
        record.waits = np.array(self._waits, dtype=np.float64)
        return record

    def _close(self, now: float) -> None:
        """End the piece of observation that is open, unless it has just begun."""
        if now <= self._closed_at:
            return
        dispatcher = self._dispatcher
        oldest = dispatcher.oldest_arrival
        piece = self._observer.close(
            now,
            self._start_wall_time + now,
            in_flight=dispatcher.waiting + dispatcher.running,
            queue_depth=dispatcher.waiting,
            oldest_wait=0.0 if oldest is None else now - oldest,
        )
        self._closed_at = now
        self.record.busy_seconds += piece.busy_slots_mean * piece.interval
        self._since_tick.append(piece)
        self._since_decision.append(piece)

    def _wake(self, _: None, now: float) -> None:
        self._is_woken = False
        self.decide(now)

    # -- requests

    def _arrive(self, index: int, now: float) -> None:
        request = Request(str(index), now, FOREVER)
        self._observer.arrived(request, now)
        self._handle(Arrived(request), now)
        if self._dispatcher.waiting and not self._is_woken and not self._fleet.ordered:
            self._is_woken = True
            self.at(now + self._wake_delay, self._wake, None)

    def end(self, lease: Lease, now: float) -> None:
        """The service of this lease is over; nothing happens if it broke before."""
        replica = self._fleet.replicas.get(lease.replica_id)
        if replica is None:
            return
        self._free(lease, CallEnd.SERVED, now)
        if replica.state is State.DRAINING:
            self._end_if_empty(replica, now)

    def _free(self, lease: Lease, end: CallEnd, now: float) -> None:
        index = int(lease.request_id)
        self._observer.slot_freed(now - self._arrivals[index] - self._waits[index], now)
        self._handle(SlotFreed(lease, end), now)

    def _handle(self, event: Event, now: float) -> None:
        for action in self._dispatcher.handle(event, now):
            if isinstance(action, Send):
                request, lease = action.request, action.lease
                index = int(request.id)
                self._waits[index] = now - self._arrivals[index]
                self._observer.started(request, now)
                self._law.begin(lease, self._fleet.replicas[lease.replica_id], now)

    # -- replicas

    def offer(self, replica: SimulatedReplica, slots: int, now: float) -> None:
        """Let a ready replica hold so many requests; one that drains gets none."""
        if replica.state is State.READY:
            self._handle(ReplicaReady(replica.id, slots), now)

    def _scale_to(self, desired: int, fleet: Fleet, now: float) -> None:
        missing = desired - fleet.ordered
        self.record.scale_ups += missing > 0
        self.record.scale_downs += missing < 0
        if missing > 0:
            back = self._fleet.taken_back(missing)
            for replica in back:
                self.offer(replica, self._law.slots(replica), now)
            self._launch(missing - len(back), now)
        elif missing < 0:
            left = -missing - self._fleet.cancelled(-missing, now)
            for replica in self._fleet.drained(left, self._dispatcher.busy_by_replica()):
                self._handle(ReplicaDraining(replica.id), now)
                self._end_if_empty(replica, now)

    def _launch(self, count: int, now: float) -> None:
        for replica in self._fleet.launch(count, now):
            self.at(replica.ready_at, self._ready, replica)

    def _supplied(self, supply_max: int, now: float) -> None:
        for replica in self._fleet.supplied(supply_max, now):
            self.at(replica.ready_at, self._ready, replica)

    def _ready(self, replica: SimulatedReplica, now: float) -> None:
        if replica.state is not State.STARTING:
            return
        self._fleet.become_ready(replica)
        self.offer(replica, self._law.slots(replica), now)
        if self._scenario.interruption_rate:
            lifetime = float(self._rng.exponential(1 / self._scenario.interruption_rate))
            self.at(now + lifetime, self._interrupt, replica)

    def _end_if_empty(self, replica: SimulatedReplica, now: float) -> None:
        if not self._dispatcher.busy_by_replica().get(replica.id):
            self._end_replica(replica, now)

    def _end_replica(self, replica: SimulatedReplica, now: float) -> None:
        self._fleet.end(replica, now)
        self._law.forget(replica)
        self._handle(ReplicaLost(replica.id), now)

    def _interrupt(self, replica: SimulatedReplica, now: float) -> None:
        """The replica is gone with all it held; its platform starts another, its clients ask again."""
        if replica.state is State.ENDED:
            return
        replaced = replica.state is State.READY
        broken = [lease for lease in self._dispatcher.live_leases() if lease.replica_id == replica.id]
        self._interruptions += 1
        self._broken += len(broken)
        self._end_replica(replica, now)
        for lease in broken:
            self._free(lease, CallEnd.BROKE, now)
        for lease in broken:
            self._arrive(int(lease.request_id), now)
        if replaced:
            self._launch(1, now)
