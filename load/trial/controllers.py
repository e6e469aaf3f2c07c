"""The two controllers, of which one leads."""

import asyncio
import re
import sys
from pathlib import Path
from typing import Any

import aiohttp
import yaml

from load.demo.program import ProgramFailed
from load.free_port import free_address
from load.trial.child import Child
from load.trial.fleet import POOL, Fleet
from load.trial.plan import Trial
from load.trial.prometheus import JOB

_LOOK = 0.1
"""Between two looks at who leads [s]."""


class Controller(Child):
    """One `autoscaler controller`; started anew it has the same history.

    Parameters
    ----------
    name : str
        By which it asks.
    trial : Trial
        Its objective and its pace.
    folder : Path
        Of its files, and of the lock that both seek.
    prometheus : str or None
        Base URL of who tells it the demand; None: the sidecars themselves.
    fleet : Fleet
        Told its decisions.
    """

    def __init__(self, name: str, trial: Trial, folder: Path, prometheus: str | None, fleet: Fleet) -> None:
        self.admin = free_address()
        self.history = folder / f"{name}.db"
        settings = {
            "admin": self.admin,
            "history": str(self.history),
            "state": str(folder / f"{name}-state"),
            "control_interval": trial.control_interval,
            "leadership": {"lock_file": str(folder / "leader.lock")},
            "pools": {POOL: _pool(trial, _demand(trial, prometheus, fleet), f"http://{fleet.address}", name)},
        }
        file = folder / f"{name}.yaml"
        file.write_text(yaml.safe_dump(settings))
        words = [sys.executable, "-m", "autoscaler", "controller", "-c", str(file)]
        super().__init__(f"controller {name}", words, folder / f"{name}.log")
        self.asks_as = name

    async def leads(self) -> bool:
        """Whether it says so."""
        _, said = await self._get("/metrics")
        return re.search(r"^autoscaler_leads 1", said, re.MULTILINE) is not None

    async def ready(self) -> None:
        """Wait until it says so. Raises ProgramFailed if it ends."""
        while (await self._get("/readyz"))[0] != 200:
            if not self.lives:
                raise ProgramFailed(f"{self.name} has ended; its log ends:\n{self.log_tail()}")
            await asyncio.sleep(_LOOK)

    async def _get(self, path: str) -> tuple[int, str]:
        """Return the status and the body of an answer; 0 if there is none."""
        try:
            async with (
                aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=1.0)) as session,
                session.get(f"http://{self.admin}{path}") as answer,
            ):
                return answer.status, await answer.text()
        except (aiohttp.ClientError, OSError):
            return 0, ""


async def leader_of(controllers: tuple[Controller, ...]) -> Controller:
    """Return the one that leads, as soon as one does."""
    while True:
        for each in controllers:
            if each.lives and await each.leads():
                return each
        await asyncio.sleep(_LOOK)


def _demand(trial: Trial, prometheus: str | None, fleet: Fleet) -> dict[str, Any]:
    """Say where the demand is read: at Prometheus, or at every place where there may be a sidecar."""
    if prometheus is None:
        urls = [f"http://{place.admin}" for place in fleet.places]
        times = {"interval": 0.5, "carry": trial.carry, "forget": trial.carry}
        return {"kind": "list", "urls": urls, **times}
    return {
        "kind": "prometheus",
        "url": prometheus,
        "selector": f'job="{JOB}"',
        "window": trial.window,
        "interval": trial.scrape,
        "timeout": trial.scrape,
        "carry": trial.carry,
    }


def _pool(trial: Trial, demand: dict[str, Any], receiver: str, name: str) -> dict[str, Any]:
    return {
        # The admin listener of a replica says whether it is ready: a probe through its door is a request.
        "server": {"kind": "plain_http", "ready_path": "/readyz"},
        "slots_per_replica": trial.slots,
        "objective": {
            "wait": trial.wait,
            "quantile": trial.quantile,
            "utilization_low": trial.utilization_low,
            "utilization_high": trial.utilization_high,
        },
        "scaling": {
            "replicas_min": trial.replicas_min,
            "replicas_max": trial.replicas_max,
            "scale_down_hold": trial.hold,
            "catch_up_time": trial.hold,
            "service_memory": 60.0,
        },
        "forecast": {"interval": trial.hold / 3, "season": 10 * trial.seconds, "refit": trial.seconds},
        "demand": demand,
        "platform": {
            "kind": "webhook",
            "url": f"{receiver}/scale?by={name}",
            "status_url": f"{receiver}/fleet",
            "status_interval": 0.5,
            "probe_interval": 1.0,
            "cold_start_initial": trial.load_time + 2.0,
        },
    }
