"""One pool, joined: queue, replicas, control loop, and what listens to them."""

from dataclasses import replace
from math import isnan, nan

import structlog

from autoscaler.app.batched_rows import BatchedRows
from autoscaler.app.control_start import first_fleet, warmed_controller
from autoscaler.app.platform import make_platform
from autoscaler.app.replica_slots import ReplicaSlots
from autoscaler.app.standing_in import StandingIn
from autoscaler.app.trouble import platform_trouble
from autoscaler.app.waker import Waker
from autoscaler.control_loop import ControlLoop, ControlOptions
from autoscaler.dispatch import Dispatcher
from autoscaler.domain import Decision, Fleet, Observation
from autoscaler.errors import PlatformUnavailable
from autoscaler.fit_process import FitProcesses
from autoscaler.model_servers.openai import OpenAI
from autoscaler.model_servers.triton import Triton
from autoscaler.platforms.keda import Keda
from autoscaler.platforms.local_process import LocalProcesses
from autoscaler.platforms.static import Static
from autoscaler.ports import Clock, Platform, RequestListener
from autoscaler.proxy.batch.batching import Batching
from autoscaler.proxy.drive import PoolDrive
from autoscaler.proxy.expectation import Expectation
from autoscaler.proxy.known_models import KnownModels
from autoscaler.scaling.merge import side_by_side
from autoscaler.scaling.observe import IntervalObserver
from autoscaler.scaling.options import WAKE_DELAY
from autoscaler.settings import PoolSettings, model_server
from autoscaler.telemetry.exposition import Metrics
from autoscaler.telemetry.history import History
from autoscaler.telemetry.ledger_watch import LedgerWatch
from autoscaler.telemetry.signal_test_window import Circumstances
from autoscaler.telemetry.signal_watch import SignalWatch
from autoscaler.telemetry.token_window import TokenWindow
from autoscaler.telemetry.trouble_watch import TroubleWatch
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
        woken = self._woken()
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
        self._expectation = Expectation(self.drive, WAKE_DELAY)
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
            follow=self._follow_pools,
        )
        self._seen: Observation | None = None
        self.standing_in: StandingIn | None = None
        """What joins it to the pool that stands in for it, if one does."""
        self.stands_in_for: list[StandingIn] = []
        """The same, for the pools that it stands in for."""
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
        self.troubles = TroubleWatch(
            lambda: platform_trouble(self.control, self.platform) | self.signals.troubles, clock.now
        )

    def substitute_by(self, other: "Pool") -> None:
        """Let `other` stand in for this one while what is ordered here does not come."""
        self.standing_in = StandingIn(self.drive, other.drive)
        other.stands_in_for.append(self.standing_in)

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
        if wanted or isinstance(self.platform, LocalProcesses | Keda):  # none is for a decision to say
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
        if self.standing_in is not None and self.standing_in.serves:
            return None
        if self.settings.policy.replicas_min > 0 and not self.drive.snapshot().slots:
            return f"pool {self.name}: no replica is ready"
        return None

    async def stop(self) -> None:
        """End the replicas that were started here, and the connections to them."""
        await self._fleet.stop()
        if self.batching is not None:
            await self.batching.close()
        await self._server.close()

    def _woken(self) -> list[RequestListener]:
        """Return who is told of arrivals so that a pool that sleeps is woken."""
        if isinstance(self.platform, Keda):
            return [self.platform]
        return [Waker(self._wake)] if self.settings.policy.replicas_min == 0 else []

    def _wake(self) -> None:
        """Have an arrival decided on, and judged by when a replica will be there that it asks for."""
        if self.control.wake() and self._acts and self.control.state is not None:
            self._expectation.follow(self.control.state.fleet, 0, self._clock.now())

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
        state, seen = self.control.state, self._seen
        if state is None or state.observation is None or seen is None:
            return None
        fleet = state.fleet
        slots = fleet.ready * fleet.slots_per_replica
        return Circumstances(seen.busy_slots_mean, slots, seen.queue_depth, fleet.ready)

    def _leases(self) -> dict[str, int]:
        """Return the slots in use by base URL of the replica."""
        return {replica.url: replica.busy for replica in self.drive.snapshot().replicas}

    def _observe(self, now: float, wall_time: float) -> Observation:
        """Return what was asked for here, and of other pools what this one is to stand in for."""
        state = self.drive.snapshot()
        elsewhere = 0 if self.standing_in is None else self.standing_in.in_flight
        self._seen = seen = self._observer.close(
            now,
            wall_time,
            in_flight=state.waiting + state.running + elsewhere,
            queue_depth=state.waiting,
            oldest_wait=state.oldest_wait,
        )
        last = self.control.state
        unknown = last is None or isnan(last.decision.numbers.service_time_mean)
        shares = [each.demand(seen.interval, wall_time, with_services=unknown) for each in self.stands_in_for]
        others = [share for share in shares if share is not None]
        return side_by_side([seen, *others], seen.interval, wall_time) if others else seen

    def _follow_pools(
        self, observation: Observation | None, fleet: Fleet, decision: Decision, now: float
    ) -> Decision:
        """Note who stands in for whom; what follows from it begins at once."""
        numbers = decision.numbers
        if self.standing_in is not None and observation is not None:
            self.standing_in.follow(observation, fleet, decision, now)
            share = self.standing_in.share if self.standing_in.is_needed else nan
            numbers = replace(numbers, substituted_share=share)
        rate = sum(each.arrival_rate for each in self.stands_in_for)
        if self.standing_in is None and not rate:
            return decision
        return replace(decision, numbers=replace(numbers, standing_in_rate=rate or nan))
