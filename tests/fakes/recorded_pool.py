"""A pool on the virtual clock whose control loop keeps a history: real controller, real fits, real file.

The forecaster is one that is fitted at once, unless another is given.
"""

import asyncio
from collections.abc import Callable
from typing import Any

import numpy as np

from autoscaler.clock import VirtualClock
from autoscaler.control_loop import ControlLoop, ControlOptions
from autoscaler.domain import Objective, Observation
from autoscaler.scaling import Controller, DecisionPolicy
from autoscaler.telemetry.history import History
from forecasting.forecaster import Forecaster
from forecasting.naive import SeasonalNaive
from tests.fakes.platform import InMemoryPlatform
from tests.fakes.replica_listener import FakeReplicaListener

INTERVAL = 10.0
_POLICY = DecisionPolicy(season=1000.0, forecast_interval=50.0, refit_interval=300.0)


class RecordedPool:
    """One life of a program with one pool; `tick` lets intervals pass, `fits` counts what was adopted."""

    def __init__(
        self,
        history: History,
        pool: str = "chat",
        now: float = 0.0,
        wall_time: float = 1e6,
        forecaster: Forecaster | None = None,
    ) -> None:
        self.clock = VirtualClock(now, wall_time)
        self.platform = InMemoryPlatform(self.clock, cold_start=20.0, ready=2)
        self.fits = 0
        self.is_lost = False
        self._rng = np.random.default_rng(7)
        self.controller = Controller(
            Objective(wait_seconds=5.0), _POLICY, forecaster or SeasonalNaive(_POLICY.season_length)
        )
        self.controller.warm(self._rng.poisson(100.0, 40).astype(float), 50.0, wall_time)
        self.loop = ControlLoop(
            pool,
            self.controller,
            self.platform,
            self._observe,
            [history],
            self.clock,
            ControlOptions(interval=INTERVAL),
            self._run_fit,
            history,
        )

    async def start(self) -> None:
        await self.platform.start(FakeReplicaListener())

    async def tick(self, times: int = 1) -> None:
        for _ in range(times):
            self.clock.move_to(self.clock.now() + INTERVAL)
            await self.loop.tick()
            await asyncio.sleep(0)

    def _observe(self, now: float, wall_time: float) -> Observation | None:
        if self.is_lost:
            return None
        arrivals = int(self._rng.poisson(20.0 + 15.0 * np.sin(now / 200.0)))
        times = self._rng.exponential(5.0, arrivals)
        return Observation(
            INTERVAL,
            arrivals,
            arrivals,
            float(times.sum()),
            float((times**2).sum()),
            float(times.sum()) / INTERVAL,
            int(self._rng.poisson(10.0)),
            int(self._rng.poisson(1.0)),
            float(self._rng.exponential(0.5)),
            wall_time,
        )

    async def _run_fit(self, job: Callable[[], Any], time_limit: float) -> Any:
        self.fits += 1
        return job()


async def a_recorded_history(history: History) -> None:
    """Record 200 steps in two lives of a program, with fits that are adopted and an interval that is lost.

    The machine is started anew in between, so its monotonic clock is set back.
    """
    first = RecordedPool(history, now=5000.0)
    await first.start()
    await first.tick(80)
    first.is_lost = True
    await first.tick(1)
    first.is_lost = False
    await first.tick(39)
    second = RecordedPool(history, now=100.0, wall_time=first.clock.wall_time() + 60.0)
    await second.start()
    await second.tick(80)
    history.flush()
    assert first.fits > 2
    assert second.fits > 2
