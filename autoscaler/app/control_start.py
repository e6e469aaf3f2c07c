"""How the control path of a pool begins: with what was learned before, and with what runs already."""

import asyncio

import structlog

from autoscaler.domain import Fleet
from autoscaler.errors import PlatformUnavailable
from autoscaler.ports import Clock, Platform
from autoscaler.scaling import Controller
from autoscaler.settings import PoolSettings
from autoscaler.telemetry.history import History

log = structlog.get_logger(__name__)


def warmed_controller(settings: PoolSettings, history: History, clock: Clock) -> Controller:
    """Make the controller, and let it learn from the history of arrivals."""
    policy = settings.policy
    controller = Controller(settings.objective, policy)
    interval = policy.forecast_interval
    end = clock.wall_time() // interval * interval
    arrivals = history.arrivals(settings.name, interval, end - policy.history_bins * interval, end)
    controller.warm(arrivals, interval, end)
    return controller


async def first_fleet(pool: str, platform: Platform, pause: float) -> Fleet:
    """Ask what there is until the platform can tell, every `pause` [s]; nothing is asked of it before."""
    while True:
        try:
            return await platform.fleet()
        except PlatformUnavailable as error:
            log.warning("platform cannot be asked; waiting for it", pool=pool, error=str(error))
        await asyncio.sleep(pause)
