"""One pool of a sidecar, joined: queue, servers, and the counting of its demand. Nobody decides here."""

from collections.abc import Collection
from typing import TYPE_CHECKING

from autoscaler.app.replica_slots import ReplicaSlots
from autoscaler.app.sidecar_options import SidecarPool
from autoscaler.dispatch import Dispatcher
from autoscaler.domain import Observation
from autoscaler.model_servers.openai import OpenAI
from autoscaler.platforms.static import Static, StaticOptions
from autoscaler.ports import Clock
from autoscaler.proxy.drive import PoolDrive
from autoscaler.proxy.known_models import KnownModels
from autoscaler.scaling.observe import IntervalObserver
from autoscaler.sharing.told_fleet import ToldFleet, ToldOptions
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
        self.told: ToldFleet | None = None
        self._servers = self._make_servers(options.servers, clock)
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
        if self.told is not None:
            trouble = self.told.trouble
            return None if trouble is None else f"pool {self.name}: {trouble}"
        if self.drive.snapshot().slots:
            return None
        return f"pool {self.name}: its server is not ready ({', '.join(self._urls)})"

    def status(self) -> PoolStatus:
        """Return what it shows; there are no decisions, so what they rest on is not known here."""
        ledger, objective, now = self.drive.snapshot(), self.options.objective, self._now()
        return PoolStatus(
            name=self.name,
            arrival_rate=float("nan"),
            forecast=ForecastStatus(),
            replicas=ReplicasStatus(
                desired=len(self._urls), starting=0, ready=now.replicas_ready, draining=0
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

    def _make_servers(
        self, servers: StaticOptions | ToldOptions, clock: Clock
    ) -> Static | ReplicaSlots | ToldFleet:
        """Return who says which servers there are."""
        if isinstance(servers, ToldOptions):
            self.told = ToldFleet(servers, self._server, clock, self.drive)
            return self.told
        listed = Static(servers, self._server)
        if self.options.auto_slots is None:
            return listed
        path = self.options.state_dir / "slots.json"
        return ReplicaSlots(listed, self._server, self.drive, self.options.auto_slots, path)

    @property
    def _urls(self) -> Collection[str]:
        """Base URLs of its servers, ready or not."""
        servers = self.options.servers
        return servers.urls if isinstance(servers, StaticOptions) else self.told.urls if self.told else ()

    def _merges(self, clock: Clock) -> "Batching | None":
        """Return who merges its requests, if its servers can say what they take."""
        options = self.options.batching
        if options is None or options.mode == "off" or isinstance(self.options.servers, ToldOptions):
            return None  # shares are of calls, and not of rows
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
