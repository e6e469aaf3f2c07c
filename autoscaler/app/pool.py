"""One pool, joined: queue, replicas, control loop, and what listens to them."""

from dataclasses import replace

from autoscaler.control_loop import ControlLoop, ControlOptions
from autoscaler.dispatch import Dispatcher
from autoscaler.domain import Observation
from autoscaler.fit_process import FitProcesses
from autoscaler.platforms.local_process import LocalOptions, LocalProcesses
from autoscaler.platforms.static import Static
from autoscaler.ports import Clock, ModelServer
from autoscaler.proxy.drive import PoolDrive
from autoscaler.scaling import Controller
from autoscaler.scaling.observe import IntervalObserver
from autoscaler.settings import PoolSettings, model_server
from autoscaler.telemetry.exposition import Metrics
from autoscaler.telemetry.history import History
from autoscaler.telemetry.waits import WaitsWindow

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
        self.drive = PoolDrive(
            settings.name,
            Dispatcher(settings.queue),
            clock,
            listeners=[self._observer, self.waits, self.metrics],
        )
        self._server = model_server(settings.server)
        self.platform = _platform(settings, self._server, clock)
        self.control = ControlLoop(
            settings.name,
            self._controller(),
            self.platform,
            self._observe,
            [history, metrics],
            clock,
            # Nobody carries anything out on servers that somebody else runs.
            replace(control, actuate=control.actuate and isinstance(self.platform, LocalProcesses)),
            fits.run,
        )
        self.discovered = False

    async def start(self) -> None:
        """Find what runs already, and bring the fleet to the size that it had or must have."""
        await self.platform.start(self.drive)
        self.discovered = True
        fleet = await self.platform.fleet()
        policy = self.settings.policy
        wanted = max(fleet.ordered, policy.replicas_min, self._last_size())
        await self.platform.scale_to(min(wanted, policy.replicas_max))

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

    def _observe(self, now: float, wall_time: float) -> Observation:
        state = self.drive.snapshot()
        return self._observer.close(
            now,
            wall_time,
            in_flight=state.waiting + state.busy,
            queue_depth=state.waiting,
            oldest_wait=state.oldest_wait,
        )


def _platform(settings: PoolSettings, server: ModelServer, clock: Clock) -> LocalProcesses | Static:
    if isinstance(settings.platform, LocalOptions):
        return LocalProcesses(settings.platform, server, clock)
    return Static(settings.platform, server)
