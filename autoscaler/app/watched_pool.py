"""One pool of a controller, joined: its doors, its platform, and the control loop between them."""

from collections.abc import Mapping
from dataclasses import replace
from math import inf, isnan, nan

from autoscaler.app.control_start import first_fleet, warmed_controller
from autoscaler.app.demand_source import demand_source
from autoscaler.app.platform import make_platform
from autoscaler.app.seen_replicas import SeenReplicas, ToldSlots, busy_beside
from autoscaler.app.trouble import platform_trouble
from autoscaler.control_loop import ControlLoop, ControlOptions
from autoscaler.domain import Observation
from autoscaler.fit_process import FitProcesses
from autoscaler.leadership import Alone
from autoscaler.platforms.keda import Keda
from autoscaler.platforms.static import Static
from autoscaler.ports import Clock, Leadership, ListsReplicas, Replica
from autoscaler.scaling.doors import Doors
from autoscaler.settings import PoolSettings, model_server
from autoscaler.sharing.teller import Teller
from autoscaler.telemetry.demand.options import DemandOptions
from autoscaler.telemetry.demand.prometheus import PrometheusReader
from autoscaler.telemetry.demand.reader import DoorReader
from autoscaler.telemetry.exposition import Metrics
from autoscaler.telemetry.history import History
from autoscaler.telemetry.trouble_watch import TroubleWatch


class WatchedPool:
    """Everything of one pool; started and stopped by the controller program."""

    def __init__(
        self,
        settings: PoolSettings,
        control: ControlOptions,
        history: History,
        metrics: Metrics,
        clock: Clock,
        fits: FitProcesses,
        leadership: Leadership,
    ) -> None:
        if settings.demand is None:
            raise ValueError(f"pool {settings.name} says nowhere where its demand is read")
        self.name, self.settings = settings.name, settings
        self._leadership, self._interval = leadership, control.interval
        self.doors = Doors(settings.demand.merge, clock.now())
        self.replicas = SeenReplicas(self._busy)
        self._server = model_server(settings.server, settings.route.tls, grpc_tls=settings.grpc_tls)
        self.platform = make_platform(settings.platform, self._server, clock)
        self._fleet = self.platform if settings.auto_slots is None else ToldSlots(self.platform, self.doors)
        self.source = demand_source(settings.name, settings.demand, self.doors, clock)
        # Nobody carries anything out on servers that somebody else runs.
        self._acts = control.actuate and not isinstance(self.platform, Static)
        self.control = ControlLoop(
            settings.name,
            warmed_controller(settings, history, clock),
            self._fleet,
            self._observe,
            [history, metrics],
            clock,
            replace(control, actuate=self._acts),
            fits.run,
            journal=history,
            leadership=None if type(leadership) is Alone else leadership,  # nobody else could lead
        )
        self.troubles = TroubleWatch(
            lambda: platform_trouble(self.control, self.platform) | self.source.troubles, clock.now
        )
        self.teller = self._make_teller(settings.demand, clock)
        self.discovered = False

    async def run(self) -> None:
        """Find what runs, and decide for ever; whoever leads at the first decision acts on it."""
        await self._fleet.start(self.replicas)
        await first_fleet(self.name, self._fleet, self._interval)
        self.discovered = True
        await self.control.run()

    async def stop(self) -> None:
        """End the watching; the replicas run on."""
        await self._fleet.stop()
        await self._server.close()

    @property
    def not_ready(self) -> str | None:
        """Why nobody shall ask this one now; None if it can be asked."""
        if not self.discovered:
            return f"pool {self.name}: looking for its replicas"
        if isinstance(self.platform, Keda) and not self._leadership.is_leader:
            return f"pool {self.name}: another controller answers to KEDA ({self._leadership.leader})"
        return None

    def _make_teller(self, demand: DemandOptions, clock: Clock) -> Teller | None:
        """Return who divides the slots, if the doors all stand before the same replicas."""
        if not demand.is_shared or not isinstance(self.source, DoorReader):
            return None
        return Teller(
            self.name,
            self.doors,
            self.source,
            lambda: self.replicas.shared() if self.discovered else None,
            self._is_listed,
            self._service_time,
            self.control.wake,
            demand.merge,
            self._leadership,
            clock,
        )

    def _is_listed(self, replica_id: str) -> bool:
        platform = self.platform
        return not isinstance(platform, ListsReplicas) or replica_id in platform.listed

    def _service_time(self) -> float:
        state = self.control.state
        known = nan if state is None else state.decision.numbers.service_time_mean
        return inf if isnan(known) else known

    def _busy(self, replicas: Mapping[str, Replica]) -> Mapping[str, int]:
        return busy_beside(self.doors, replicas) if self.teller is None else self.teller.busy_slots()

    def _observe(self, now: float, wall_time: float) -> Observation | None:
        told = self.source if isinstance(self.source, PrometheusReader) else self.doors
        seen = told.close(now, wall_time)
        # Who waits for a first replica is heard of before the interval has ended in which it came.
        waiting = 0 if self.teller is None else self.teller.waiting
        if seen is None or seen.queue_depth or not waiting:
            return seen
        return replace(seen, queue_depth=waiting, in_flight=max(waiting, seen.in_flight))
