"""One pool of a sidecar, joined: queue, servers, and the counting of its demand. Nobody decides here."""

from typing import TYPE_CHECKING

from autoscaler.app.replica_slots import ReplicaSlots
from autoscaler.app.sidecar_options import SidecarPool
from autoscaler.dispatch import Dispatcher
from autoscaler.domain import Observation
from autoscaler.model_servers.openai import OpenAI
from autoscaler.platforms.static import Static
from autoscaler.ports import Clock
from autoscaler.proxy.drive import PoolDrive
from autoscaler.proxy.known_models import KnownModels
from autoscaler.scaling.observe import IntervalObserver
from autoscaler.telemetry.demand.recent import PoolNow, PoolSource
from autoscaler.telemetry.exposition import Metrics
from autoscaler.telemetry.status import (
    ForecastStatus,
    ObjectiveStatus,
    OccupancyStatus,
    PoolStatus,
    ReplicasStatus,
    SlotsStatus,
    WaitsStatus,
)

if TYPE_CHECKING:
    from autoscaler.proxy.batch.batching import Batching


class DoorPool:
    """Everything of one pool at this door."""

    def __init__(self, options: SidecarPool, metrics: Metrics, clock: Clock) -> None:
        self.name, self.options = options.name, options
        self._observer = IntervalObserver(clock.now())
        self.metrics = metrics.for_pool(options.name)
        self._server = options.make_server()
        self.batching = self._merges(clock)
        self.drive = PoolDrive(
            options.name,
            Dispatcher(options.queue, options.dispatch),
            clock,
            listeners=[self._observer, self.metrics],
            merger=self.batching,
        )
        self._servers: Static | ReplicaSlots = Static(options.servers, self._server)
        if options.auto_slots is not None:
            path = options.state_dir / "slots.json"
            self._servers = ReplicaSlots(self._servers, self._server, self.drive, options.auto_slots, path)
        self.models = self._known_models(clock)
        self.demand = PoolSource(self._observe, self._now)

    async def start(self) -> None:
        """Find out who of the servers is ready, and keep watching."""
        await self._servers.start(self.drive)

    async def stop(self) -> None:
        """End the watching, and the connections."""
        await self._servers.stop()
        if self.batching is not None:
            await self.batching.close()
        await self._server.close()

    @property
    def not_ready(self) -> str | None:
        """Why its requests would only wait now; None if they would not."""
        if self.drive.snapshot().slots:
            return None
        return f"pool {self.name}: its server is not ready ({', '.join(self.options.servers.urls)})"

    def status(self) -> PoolStatus:
        """Return what it shows; there are no decisions, so what they rest on is not known here."""
        ledger, objective, now = self.drive.snapshot(), self.options.objective, self._now()
        return PoolStatus(
            name=self.name,
            arrival_rate=float("nan"),
            forecast=ForecastStatus(),
            replicas=ReplicasStatus(
                desired=len(self.options.servers.urls), starting=0, ready=now.replicas_ready, draining=0
            ),
            slots=SlotsStatus(
                busy=ledger.busy,
                free=max(0, ledger.slots - ledger.busy),
                total=ledger.slots,
                per_replica=ledger.slots // max(1, now.replicas_ready),
            ),
            occupancy=OccupancyStatus(),
            queue_depth=ledger.waiting,
            oldest_wait=ledger.oldest_wait,
            waits=WaitsStatus(),
            objective=ObjectiveStatus(
                wait_seconds=objective.wait_seconds,
                wait_quantile=objective.wait_quantile,
                utilization_low=objective.utilization_low,
                utilization_high=objective.utilization_high,
            ),
            requests=self.metrics.outcomes(),
            slots_leaked=ledger.slots_leaked,
            ledger_difference=ledger.ledger_difference,
        )

    def _merges(self, clock: Clock) -> "Batching | None":
        """Return who merges its requests, if its servers can say what they take."""
        options = self.options.batching
        if options is None or options.mode == "off":
            return None
        from autoscaler.model_servers.triton import Triton  # noqa: PLC0415 - where it is needed only
        from autoscaler.proxy.batch.batching import Batching  # noqa: PLC0415 - where it is needed only

        if not isinstance(self._server, Triton):
            return None
        return Batching(options, self._server, self.options.model, clock, self.metrics.batched)

    def _known_models(self, clock: Clock) -> KnownModels | None:
        """Return what its servers can be asked for, if they are language models."""
        if not isinstance(self._server, OpenAI):
            return None
        named = (*(() if self.options.model is None else (self.options.model,)), *self.options.models)
        return KnownModels(
            named, self._server.models, lambda: [each.url for each in self.drive.ready_replicas()], clock
        )

    def _observe(self, now: float, wall_time: float) -> Observation:
        state = self.drive.snapshot()
        return self._observer.close(
            now,
            wall_time,
            in_flight=state.waiting + state.running,
            queue_depth=state.waiting,
            oldest_wait=state.oldest_wait,
        )

    def _now(self) -> PoolNow:
        self.drive.offer_anew()
        state = self.drive.snapshot()
        return PoolNow(len(self.drive.ready_replicas()), state.slots, state.busy)
