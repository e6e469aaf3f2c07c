"""One pool, joined: queue, replicas, control loop, and what listens to them."""

from dataclasses import replace

import structlog

from autoscaler.app.batched_rows import BatchedRows
from autoscaler.app.control_start import first_fleet, warmed_controller
from autoscaler.app.platform import make_platform
from autoscaler.app.replica_slots import ReplicaSlots
from autoscaler.control_loop import ControlLoop, ControlOptions
from autoscaler.dispatch import Dispatcher
from autoscaler.domain import Observation
from autoscaler.errors import PlatformUnavailable
from autoscaler.fit_process import FitProcesses
from autoscaler.model_servers.openai import OpenAI
from autoscaler.model_servers.triton import Triton
from autoscaler.platforms.keda import Keda
from autoscaler.platforms.local_process import LocalProcesses
from autoscaler.platforms.static import Static
from autoscaler.ports import Clock, Platform
from autoscaler.proxy.batch.batching import Batching
from autoscaler.proxy.drive import PoolDrive
from autoscaler.proxy.expectation import Expectation
from autoscaler.proxy.known_models import KnownModels
from autoscaler.scaling.observe import IntervalObserver
from autoscaler.settings import PoolSettings, model_server
from autoscaler.telemetry.exposition import Metrics
from autoscaler.telemetry.history import History
from autoscaler.telemetry.ledger_watch import LedgerWatch
from autoscaler.telemetry.signal_test_window import Circumstances
from autoscaler.telemetry.signal_watch import SignalWatch
from autoscaler.telemetry.token_window import TokenWindow
from autoscaler.telemetry.waits import WaitsWindow

log = structlog.get_logger(__name__)

_LAST_SIZE_HOLDS = 600.0
"""A predecessor's fleet size is taken over if it was decided so recently [s]."""


class Pool:
    """Everything of one pool; started and stopped by the program."""

    def __init__(
        self,
        settings: PoolSettings,
        control: ControlOptions,
        history: History,
        metrics: Metrics,
        clock: Clock,
        fits: FitProcesses,
    ) -> None:
        self.name = settings.name
        self.settings = settings
        self._history = history
        self._clock = clock
        self._observer = IntervalObserver(clock.now())
        self.waits = WaitsWindow()
        self.tokens = TokenWindow(clock.now())
        read = [self.tokens] if settings.route.reads_tokens else []
        self.metrics = metrics.for_pool(settings.name)
        self._server = model_server(settings.server, settings.route.tls, grpc_tls=settings.grpc_tls)
        self.platform = make_platform(settings.platform, self._server, clock)
        woken = [self.platform] if isinstance(self.platform, Keda) else []
        self.batching = self._merges(clock)
        self.drive = PoolDrive(
            settings.name,
            Dispatcher(settings.queue, settings.dispatch),
            clock,
            listeners=[self._observer, self.waits, *read, self.metrics, *woken],
            merger=self.batching,
        )
        self._fleet = self._with_slots()
        if self.batching is not None:
            self._fleet = BatchedRows(self._fleet, self.drive)
        self.models = self._known_models(clock)
        self._expectation = Expectation(self.drive, control.interval)
        # Nobody carries anything out on servers that somebody else runs.
        self._acts = acts = control.actuate and not isinstance(self.platform, Static)
        self.control = ControlLoop(
            settings.name,
            warmed_controller(settings, history, clock),
            self._fleet,
            self._observe,
            [history, metrics, *([self._expectation] if acts else [])],
            clock,
            replace(control, actuate=acts),
            fits.run,
            journal=history,
        )
        self._interval = control.interval
        self.discovered = False
        self.ledger = LedgerWatch(settings.name, self._leases)
        self.signals = SignalWatch(
            settings.name,
            settings.signals,
            clock,
            self._circumstances,
            lambda: self.drive.urls,
            self.ledger,
        )

    async def start(self) -> None:
        """Find what runs already, and bring the fleet to the size that it had or must have."""
        await self._fleet.start(self.drive)
        fleet = await first_fleet(self.name, self._fleet, self._interval)
        self.discovered = True
        # Local replicas are started here only, so without them there would be nothing to recommend for.
        if not self._acts and not isinstance(self.platform, LocalProcesses):
            return
        policy = self.settings.policy
        wanted = max(fleet.ordered, policy.replicas_min, self._last_size())
        wanted = min(wanted, policy.replicas_max)
        try:
            await self._fleet.scale_to(wanted)
        except PlatformUnavailable as error:
            log.warning("platform refused; asked again next interval", pool=self.name, error=str(error))
        if self._acts:
            self._expectation.follow(fleet, wanted, self._clock.now())

    @property
    def not_ready(self) -> str | None:
        """Why its requests would only wait now; None if they would not, or if it may be asleep."""
        if not self.discovered:
            return f"pool {self.name}: looking for its replicas"
        if self.settings.policy.replicas_min > 0 and not self.drive.snapshot().slots:
            return f"pool {self.name}: no replica is ready"
        return None

    async def stop(self) -> None:
        """End the replicas that were started here, and the connections to them."""
        await self._fleet.stop()
        if self.batching is not None:
            await self.batching.close()
        await self._server.close()

    def _merges(self, clock: Clock) -> Batching | None:
        """Return who merges its requests, if its servers can say what they take."""
        server, options = self._server, self.settings.server
        if not isinstance(server, Triton) or options.batching is None or options.batching.mode == "off":
            return None
        return Batching(options.batching, server, options.model, clock, self.metrics.batched)

    def _known_models(self, clock: Clock) -> KnownModels | None:
        """Return what its servers can be asked for, if they are language models."""
        server, options = self._server, self.settings.server
        if not isinstance(server, OpenAI):
            return None
        named = (*(() if options.model is None else (options.model,)), *options.models)
        return KnownModels(
            named, server.models, lambda: [replica.url for replica in self.drive.ready_replicas()], clock
        )

    def _with_slots(self) -> Platform:
        """Return the platform; one whose replicas have their slots found out, where nobody has set them."""
        auto = self.settings.auto_slots
        if auto is None:
            return self.platform
        path = self.settings.state_dir / "slots.json"
        return ReplicaSlots(self.platform, self._server, self.drive, auto, path)

    def _last_size(self) -> int:
        """Replicas that a predecessor wanted just now; 0 if there was none."""
        last = self._history.last_decision(self.name)
        if last is None or self._clock.wall_time() - last.wall_time > _LAST_SIZE_HOLDS:
            return 0
        return last.decision.desired

    def _circumstances(self) -> Circumstances | None:
        """Return what was measured here in the last interval, for the signals to be held against."""
        state = self.control.state
        if state is None or state.observation is None:
            return None
        fleet, seen = state.fleet, state.observation
        slots = fleet.ready * fleet.slots_per_replica
        return Circumstances(seen.busy_slots_mean, slots, seen.queue_depth, fleet.ready)

    def _leases(self) -> dict[str, int]:
        """Return the slots in use by base URL of the replica."""
        return {replica.url: replica.busy for replica in self.drive.snapshot().replicas}

    def _observe(self, now: float, wall_time: float) -> Observation:
        state = self.drive.snapshot()
        return self._observer.close(
            now,
            wall_time,
            in_flight=state.waiting + state.running,
            queue_depth=state.waiting,
            oldest_wait=state.oldest_wait,
        )
