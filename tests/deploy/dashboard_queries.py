"""The queries of the Grafana dashboard that ships, as Grafana would send them."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DEPLOY = Path(__file__).parents[2] / "deploy"
DASHBOARD = DEPLOY / "grafana" / "autoscaler.json"
RULES = DEPLOY / "prometheus" / "rules.yaml"
RULES_TEST = DEPLOY / "prometheus" / "rules_test.yaml"

OF_GPUS = frozenset({"GPU busy", "GPU memory", "GPU power"})
"""Panels that are empty on a machine without GPUs."""
OF_LANGUAGE_MODELS = frozenset(
    {
        "Tokens",
        "Time to the first token",
        "Time per token",
        "Time to the first token, in a slot",
        "Tokens that no server told",
    }
)
"""Panels that are empty where no language model is served."""
OF_SOME_CONFIGURATIONS = frozenset(
    {
        "Requests by tenant",
        "Batch size",
        "Largest batches",
        "Merged calls",
        "Orders that come",
        "How long an order takes",
        "Signals from outside",
        "Signals in quarantine",
    }
)
"""Panels that are empty unless tenants, a Triton pool, signals, or a platform that is told are configured."""
OF_CONTROLLERS = frozenset(
    {
        "Sidecars by what is known of them",
        "Who leads",
        "Restarts of sidecars",
        "Arrivals by sidecar",
        "Slots in use by sidecar",
        "Waiting by sidecar",
        "Slots of each proxy",
    }
)
"""Panels that are empty where one program does everything."""

_VARIABLES = {
    "$namespace": ".*",
    "$pool": ".+",
    "$objective": "5",
    "$__rate_interval": "10s",
    "$__interval": "10s",
}


@dataclass(frozen=True)
class Query:
    """One query of one panel."""

    panel: str
    legend: str
    text: str


def dashboard() -> dict[str, Any]:
    """Return the dashboard as it ships."""
    return json.loads(DASHBOARD.read_text("utf-8"))


def panels() -> list[dict[str, Any]]:
    """Return the panels that show something."""
    return [panel for panel in dashboard()["panels"] if panel["type"] != "row"]


def queries() -> Iterator[Query]:
    """Yield every query, with the variables filled in; the annotations are a panel of their own."""
    for panel in panels():
        for target in panel["targets"]:
            yield Query(panel["title"], target["legendFormat"], filled_in(target["expr"]))
    for each in dashboard()["annotations"]["list"]:
        yield Query("annotations", each["name"], filled_in(each["expr"]))


def filled_in(text: str) -> str:
    """Put in the values of the dashboard's variables."""
    for name, value in _VARIABLES.items():
        text = text.replace(name, value)
    return text
