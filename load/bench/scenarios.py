"""The scenarios that policies are compared on: those of `../shared/traces/scenarios`.

Each is a real shape of demand, second by second, with the history before it, a law of service, starts, and an
objective. `index.json` there says all of it; nothing about any of them is known to the product.
"""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np

from autoscaler.domain import Objective
from autoscaler.replay.scenario import Floats, Scenario

SCENARIOS = Path(__file__).parents[3] / "shared" / "traces" / "scenarios"
HOURS = 36.0
"""Of each, in the published comparison; the histories are whole."""


def scenario_names() -> list[str]:
    """Return the names of the scenarios, in the order of the index; none where the traces are absent."""
    return list(_index()) if _index_file().is_file() else []


def load_scenario(name: str, hours: float | None = HOURS) -> Scenario:
    """Return a scenario, cut to its first `hours` [h]; None takes all of it.

    Raises
    ------
    KeyError
        If the index has no such scenario.
    FileNotFoundError
        If the traces are absent.
    """
    entry = _index()[name]
    counts, interval = _counts(entry["replay"]), float(entry["replay_interval_s"])
    kept = len(counts) if hours is None else round(hours * 3600 / interval)
    return Scenario(
        counts=counts[:kept],
        interval=interval,
        service_time_mean=entry["service_mean_s"],
        service_scv=entry["service_scv"],
        slots_per_replica=entry["slots_per_replica"],
        cold_start_mean=entry["cold_start_mean_s"],
        cold_start_cv=entry["cold_start_cv"],
        objective=Objective(wait_seconds=entry["wait_objective_s"], wait_quantile=entry["wait_quantile"]),
        control_interval=float(entry["control_interval_s"]),
        replicas_initial=entry["initial_replicas"],
        history=_counts(entry["history"]),
        history_interval=float(entry["history_interval_s"]),
    )


def _index_file() -> Path:
    return SCENARIOS / "index.json"


def _index() -> dict[str, dict[str, Any]]:
    index: dict[str, dict[str, Any]] = json.loads(_index_file().read_text(encoding="utf-8"))
    return index


def _counts(file: str) -> Floats:
    with gzip.open(SCENARIOS / file, "rt", encoding="utf-8") as lines:
        return np.loadtxt(lines, skiprows=1)
