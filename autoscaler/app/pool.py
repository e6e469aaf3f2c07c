"""One pool, joined: queue, replicas, control loop, and what listens to them."""

import asyncio
from dataclasses import replace

import structlog

from autoscaler.app.platform import make_platform
from autoscaler.control_loop import ControlLoop, ControlOptions
from autoscaler.dispatch import Dispatcher
from autoscaler.domain import Fleet, Observation
from autoscaler.errors import PlatformUnavailable
from autoscaler.fit_process import FitProcesses
from autoscaler.platforms.keda import Keda
from autoscaler.platforms.local_process import LocalProcesses
from autoscaler.platforms.static import Static
from autoscaler.ports import Clock
from autoscaler.proxy.drive import PoolDrive
from autoscaler.proxy.expectation import Expectation
from autoscaler.scaling import Controller
from autoscaler.scaling.observe import IntervalObserver
from autoscaler.settings import PoolSettings, model_server
from autoscaler.telemetry.exposition import Metrics
from autoscaler.telemetry.history import History
from autoscaler.telemetry.signal_test_window import Circumstances
from autoscaler.telemetry.signal_watch import SignalWatch
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
        self.metrics = metrics.for_pool(settings.name)
        self._server = model_server(settings.server, settings.route.tls)
        self.platform = make_platform(settings.platform, self._server, clock)
        woken = [self.platform] if isinstance(self.platform, Keda) else []
        self.drive = PoolDrive(
            settings.name,
            Dispatcher(settings.queue, settings.dispatch),
            clock,
            listeners=[self._observer, self.waits, self.metrics, *woken],
        )
        self._expectation = Expectation(self.drive, control.interval)
        # Nobody carries anything out on servers that somebody else runs.
        self._acts = acts = control.actuate and not isinstance(self.platform, Static)
        self.control = ControlLoop(
            settings.name,
            self._controller(),
            self.platform,
            self._observe,
            [history, metrics, *([self._expectation] if acts else [])],
            clock,
            replace(control, actuate=acts),
            fits.run,
            journal=history,
        )
        self._interval = control.interval
        self.discovered = False
        self.signals = SignalWatch(
            settings.name, settings.signals, clock, self._circumstances, lambda: self.drive.urls
        )

    async def start(self) -> None:
        """Find what runs already, and bring the fleet to the size that it had or must have."""
        await self.platform.start(self.drive)
        fleet = await self._first_fleet()
        self.discovered = True
        # Local replicas are started here only, so without them there would be nothing to recommend for.
        if not self._acts and not isinstance(self.platform, LocalProcesses):
            return
        policy = self.settings.policy
        wanted = max(fleet.ordered, policy.replicas_min, self._last_size())
        wanted = min(wanted, policy.replicas_max)
        try:
            await self.platform.scale_to(wanted)
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
        await self.platform.stop()
        await self._server.close()

    async def _first_fleet(self) -> Fleet:
        """Ask what there is until the platform can tell; nothing is asked of it before."""
        while True:
            try:
                return await self.platform.fleet()
            except PlatformUnavailable as error:
                log.warning("platform cannot be asked; waiting for it", pool=self.name, error=str(error))
            await asyncio.sleep(self._interval)

    def _last_size(self) -> int:
        """Replicas that a predecessor wanted just now; 0 if there was none."""
        last = self._history.last_decision(self.name)
        if last is None or self._clock.wall_time() - last.wall_time > _LAST_SIZE_HOLDS:
            return 0
        return last.decision.desired

    def _controller(self) -> Controller:
        """Make the controller, and let it learn from the history of arrivals."""
        policy = self.settings.policy
        controller = Controller(self.settings.objective, policy)
        interval = policy.forecast_interval
        end = self._clock.wall_time() // interval * interval
        arrivals = self._history.arrivals(self.name, interval, end - policy.history_bins * interval, end)
        controller.warm(arrivals, interval, end)
        return controller

    def _circumstances(self) -> Circumstances | None:
        """Return what was measured here in the last interval, for the signals to be held against."""
        state = self.control.state
        if state is None or state.observation is None:
            return None
        fleet, seen = state.fleet, state.observation
        slots = fleet.ready * fleet.slots_per_replica
        return Circumstances(seen.busy_slots_mean, slots, seen.queue_depth, fleet.ready)

    def _observe(self, now: float, wall_time: float) -> Observation:
        state = self.drive.snapshot()
        return self._observer.close(
            now,
            wall_time,
            in_flight=state.waiting + state.busy,
            queue_depth=state.waiting,
            oldest_wait=state.oldest_wait,
        )
