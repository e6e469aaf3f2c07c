"""What the demo asks, of what servers, and with which configuration.

Three days in fast motion. Sentences come for embedding; a replica stands for one GPU that serves one sentence
at a time, in 0.6 s on average. At the evening peak that is the work of twelve GPUs, at night of two.

The first day shows the controller without a season, the others with one. All times are shortened together:
a day is 36 s, so that the control interval of half a second stands for 20 minutes, and a cold start of
about two seconds for more than an hour. That is harder than real life, where a start takes minutes of a day,
and the wait objective asks for 95 % because there are fewer requests in such a day than in a real one: what
is not known of the next seconds is paid for with idle replicas.
"""

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from load.arrivals import DayShape, varying
from load.generator import Outgoing

ROOT = Path(__file__).parents[2]
POOL = "embed"
SENTENCES = (
    "Where can I find the invoice for last month?",
    "The parcel arrived, but the box was open.",
    "How do I change the address of my account?",
    "A quiet room with a view of the sea, please.",
    "The train to the airport leaves every ten minutes.",
    "My screen stays black after the update.",
    "Is there a discount for students?",
    "Turn left at the bakery and cross the bridge.",
    "The soup needs a little more salt.",
    "Please cancel the order that I placed this morning.",
    "Which bus goes to the museum on Sundays?",
    "The battery lasts two days if the screen is dim.",
    "We met at the lake where the old boats lie.",
    "Can the meeting be moved to Thursday afternoon?",
    "The second chapter explains how tides work.",
    "A refund was promised, but nothing has come.",
)


@dataclass(frozen=True)
class Scenario:
    """One run of the demo.

    Attributes
    ----------
    server : {"triton", "plain"}
        What the replicas are.
    triton_home : Path
        Where Triton's environment is, if they are Triton servers.
    seconds : float
        How long requests come [s].
    seed : int
        Of arrivals, sentences and service times.
    day : float
        Length of a day in fast motion [s].
    rate_peak : float
        Arrival rate at the evening peak [1/s].
    service_time, service_scv, load_time : float
        Of the emulated accelerator: mean service time [s], its SCV [1], time to load the weights [s].
    wait, quantile, utilization_low, utilization_high : float
        The objective: see `autoscaler.domain.Objective`.
    replicas_min, replicas_max : int
        Bounds of the fleet [1].
    """

    server: Literal["triton", "plain"]
    triton_home: Path
    seconds: float = 110.0
    seed: int = 1
    day: float = 36.0
    rate_peak: float = 20.0
    service_time: float = 0.6
    service_scv: float = 0.4
    load_time: float = 0.5
    wait: float = 2.0
    quantile: float = 0.95
    utilization_low: float = 0.60
    utilization_high: float = 0.75
    replicas_min: int = 2
    replicas_max: int = 24

    def arrivals(self) -> np.ndarray:
        """Return when requests come, shape (n,) [s]."""
        shape = DayShape(self.rate_peak, self.day)
        return varying(shape.rate, self.rate_peak, self.seconds, np.random.default_rng(self.seed))

    def outgoing(self, url: str, index: int) -> Outgoing:
        """Return the request number `index`, as Triton wants it; the plain server takes anything."""
        sentence = SENTENCES[index % len(SENTENCES)]
        tensor = {"name": "TEXT", "shape": [1, 1], "datatype": "BYTES", "data": [sentence]}
        body = {"id": f"{self.seed}-{index}", "inputs": [tensor]}
        headers = {"Content-Type": "application/json"}
        return Outgoing(f"{url}/v2/models/embed/infer", "POST", headers, json.dumps(body).encode())

    def configuration(self, folder: Path, listen: str, admin: str) -> dict[str, Any]:
        """Return the configuration of the program, as its YAML file has it."""
        return {
            "listen": listen,
            "admin": admin,
            "history": str(folder / "history.db"),
            "state": str(folder / "state"),
            "control_interval": "500ms",
            "drain": {"max": "5s"},
            "pools": {
                POOL: {
                    # Nothing is merged: the emulated accelerator takes as long for thirty as for one.
                    "server": {"kind": "triton", "model": "embed", "batching": "off"}
                    if self.server == "triton"
                    else {"kind": "plain_http", "ready_path": "/healthz"},
                    "slots_per_replica": 1,
                    "objective": {
                        "wait": self.wait,
                        "quantile": self.quantile,
                        "utilization_low": self.utilization_low,
                        "utilization_high": self.utilization_high,
                    },
                    "scaling": {
                        "replicas_min": self.replicas_min,
                        "replicas_max": self.replicas_max,
                        "scale_down_hold": "2s",
                        "catch_up_time": "2s",
                        "service_memory": "30s",
                    },
                    "forecast": {"interval": "1s", "season": self.day, "refit": "4s"},
                    "platform": {
                        "kind": "local",
                        "command": self.replica_command(),
                        "cwd": str(ROOT),
                        "ready_timeout": "60s",
                        "cold_start_initial": "1s",
                        "drain_max": "10s",
                    },
                }
            },
        }

    def replica_command(self) -> list[str]:
        """Return the command that starts one replica."""
        accelerator = ["--service-time", str(self.service_time), "--scv", str(self.service_scv)]
        if self.server == "plain":
            delay = ["--start-delay", str(self.load_time)]
            return [sys.executable, "-m", "load.model_server", "--port", "{port}", *accelerator, *delay]
        home = ["--home", str(self.triton_home), "--load-time", str(self.load_time)]
        return [sys.executable, "-m", "load.triton", "serve", "--port", "{port}", *accelerator, *home]
