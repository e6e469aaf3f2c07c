"""The driver on a virtual clock: arrivals, ends of service, starts and control ticks in order of time.

It does what the live drivers do and no more: reports events to the dispatcher, facts to the observer,
one observation per control interval to the policy, and the decision to the (simulated) platform.
"""

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from autoscaler.dispatch.actions import Send
from autoscaler.dispatch.admission import QueueOptions
from autoscaler.dispatch.dispatcher import Dispatcher
from autoscaler.dispatch.events import Arrived, Event, ReplicaDraining, ReplicaLost, ReplicaReady, SlotFreed
from autoscaler.dispatch.slots import Lease
from autoscaler.domain import Decision, Fleet, Request
from autoscaler.replay.policies.policy import Policy
from autoscaler.replay.replicas import SimulatedFleet, SimulatedReplica
from autoscaler.replay.scenario import Scenario
from autoscaler.scaling.observe import IntervalObserver

FOREVER = float("inf")


@dataclass(slots=True)
class Record:
    """What a replay showed, interval by interval.

    Attributes
    ----------
    arrivals, waits : ndarray, shape (n_requests,)
        Time of arrival [s] and waiting time [s]; a request that never started waits for ever (inf).
    ticks : list of (now, busy_slots_mean, slots, ready, starting, draining)
        One per control interval.
    decisions : list of (now, decision)
        As returned by the policy.
    replica_seconds, busy_seconds : float
        Paid for, and spent in service [s].
    """

    arrivals: NDArray[np.float64]
    waits: NDArray[np.float64]
    ticks: list[tuple[float, float, float, int, int, int]] = field(default_factory=list)
    decisions: list[tuple[float, Decision | int]] = field(default_factory=list)
    replica_seconds: float = 0.0
    busy_seconds: float = 0.0
    scale_ups: int = 0
    scale_downs: int = 0


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
    demand_rng, start_rng = np.random.default_rng(seed).spawn(2)
    arrivals = scenario.arrival_times(demand_rng)
    run = _Run(
        scenario, arrivals, scenario.service_times(len(arrivals), demand_rng), start_rng, start_wall_time
    )
    run.start()
    step = scenario.control_interval
    ticks = max(1, round(scenario.duration / step))
    for tick in range(1, ticks + 1):
        run.advance(tick * step)
        run.control(policy, tick * step)
        if tick % max(1, ticks // 100) == 0:
            progress(tick / ticks)
    return run.finish(ticks * step)


class _Run:
    """State of one replay."""

    def __init__(
        self,
        scenario: Scenario,
        arrivals: NDArray[np.float64],
        services: NDArray[np.float64],
        rng: np.random.Generator,
        start_wall_time: float,
    ) -> None:
        self._scenario = scenario
        self._arrivals = arrivals.tolist()
        self._services = services.tolist()
        self._next = 0
        self._start_wall_time = start_wall_time
        self._dispatcher = Dispatcher(QueueOptions(requests_max=10**9, bytes_max=10**18))
        self._observer = IntervalObserver(0.0)
        self._fleet = SimulatedFleet(scenario, rng)
        self._heap: list[tuple[float, int, Lease | SimulatedReplica]] = []
        self._serial = 0
        self.record = Record(arrivals, np.full(len(arrivals), np.inf))

    def start(self) -> None:
        """Begin with the replicas that are there."""
        for replica in self._fleet.launch(self._scenario.replicas_initial, 0.0, at_once=True):
            self._ready(replica, 0.0)

    def advance(self, until: float) -> None:
        """Let everything happen that is due up to `until` [s]."""
        arrivals, heap = self._arrivals, self._heap
        while True:
            arrival = arrivals[self._next] if self._next < len(arrivals) else FOREVER
            due = heap[0][0] if heap else FOREVER
            if min(arrival, due) > until:
                return
            if due <= arrival:
                now, _, what = heapq.heappop(heap)
                if isinstance(what, Lease):
                    self._freed(what, now)
                elif what.id in self._fleet.replicas and what.state == "starting":
                    self._ready(what, now)
            else:
                request = Request(str(self._next), arrival, FOREVER)
                self._next += 1
                self._observer.arrived(request, arrival)
                self._handle(Arrived(request), arrival)

    def control(self, policy: Policy, now: float) -> None:
        """Close the interval, ask the policy, and move the fleet."""
        dispatcher = self._dispatcher
        oldest = dispatcher.oldest_arrival
        observation = self._observer.close(
            now,
            self._start_wall_time + now,
            in_flight=dispatcher.waiting + dispatcher.running,
            queue_depth=dispatcher.waiting,
            oldest_wait=0.0 if oldest is None else now - oldest,
        )
        fleet = self._fleet.fleet()
        slots = fleet.ready * fleet.slots_per_replica
        self.record.ticks.append(
            (now, observation.busy_slots_mean, slots, fleet.ready, fleet.starting, fleet.draining)
        )
        decision = policy.decide(observation, fleet, now)
        if decision is None:
            return
        self.record.decisions.append((now, decision))
        self._scale_to(decision if isinstance(decision, int) else decision.desired, fleet, now)

    def finish(self, now: float) -> Record:
        """Book the replicas that still live, and return the record."""
        for replica_id in list(self._fleet.replicas):
            self._fleet.ended(replica_id, now)
        self.record.replica_seconds = self._fleet.replica_seconds
        return self.record

    def _scale_to(self, desired: int, fleet: Fleet, now: float) -> None:
        missing = desired - fleet.ordered
        self.record.scale_ups += missing > 0
        self.record.scale_downs += missing < 0
        if missing > 0:
            back = self._fleet.taken_back(missing)
            for replica in back:
                self._handle(ReplicaReady(replica.id, self._scenario.slots_per_replica), now)
            for replica in self._fleet.launch(missing - len(back), now):
                self._push(replica.ready_at, replica)
        elif missing < 0:
            left = -missing - self._fleet.cancelled(-missing, now)
            busy = self._dispatcher.busy_by_replica()
            for replica in self._fleet.drained(left, busy):
                self._handle(ReplicaDraining(replica.id), now)
                self._end_if_empty(replica.id, now)

    def _ready(self, replica: SimulatedReplica, now: float) -> None:
        replica.state = "ready"
        self._handle(ReplicaReady(replica.id, self._scenario.slots_per_replica), now)

    def _freed(self, lease: Lease, now: float) -> None:
        self._observer.slot_freed(self._services[int(lease.request_id)], now)
        self._handle(SlotFreed(lease), now)
        replica = self._fleet.replicas.get(lease.replica_id)
        if replica is not None and replica.state == "draining":
            self._end_if_empty(replica.id, now)

    def _end_if_empty(self, replica_id: str, now: float) -> None:
        if not self._dispatcher.busy_by_replica().get(replica_id):
            self._handle(ReplicaLost(replica_id), now)
            self._fleet.ended(replica_id, now)

    def _handle(self, event: Event, now: float) -> None:
        for action in self._dispatcher.handle(event, now):
            if isinstance(action, Send):
                index = int(action.request.id)
                service_time = self._services[index]
                self.record.waits[index] = now - action.request.arrived_at
                self.record.busy_seconds += service_time
                self._observer.started(action.request, now)
                self._push(now + service_time, action.lease)

    def _push(self, at: float, what: Lease | SimulatedReplica) -> None:
        self._serial += 1
        heapq.heappush(self._heap, (at, self._serial, what))
