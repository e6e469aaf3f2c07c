"""The picture of a run: how many wait longer than t, measured and in theory."""

from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from load.law.judge import Verdict
from load.law.recursion import Floats

POINTS = 160
LEAST = 1e-3
"""Rarer than this is not drawn; too few requests were so late [1]."""


def draw(verdicts: list[Verdict], path: Path) -> None:
    """Write a picture with a panel for each law, a pair of lines for each utilization."""
    names = list(dict.fromkeys(verdict.case.name for verdict in verdicts))
    with mpl.rc_context({"svg.hashsalt": "law", "font.size": 9}):
        figure = Figure(figsize=(10.5, 3.6), layout="constrained")
        panels = figure.subplots(1, len(names), sharey=True, squeeze=False)[0]
        for panel, name in zip(panels, names, strict=True):
            _panel(panel, name, [verdict for verdict in verdicts if verdict.case.name == name])
        panels[0].set_ylabel("P(W > t)")
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None, dpi=120)


def _panel(panel: Axes, name: str, verdicts: list[Verdict]) -> None:
    for colour, verdict in zip(("C0", "C1", "C3"), verdicts, strict=False):
        measured = panel.plot(*_survival(verdict.measured), color=colour, linewidth=1.8)[0]
        measured.set_label(f"ρ = {verdict.case.utilization:g}")
        panel.plot(*_survival(verdict.model), color="black", linewidth=0.8, linestyle="--")
    panel.plot([], [], color="black", linewidth=0.8, linestyle="--", label="theory")
    panel.set(
        title=f"{name}, c = {verdicts[0].case.servers}", xlabel="t [ms]", yscale="log", ylim=(LEAST, 1.0)
    )
    panel.legend(loc="upper right", fontsize=8)


def _survival(waits: Floats) -> tuple[Floats, Floats]:
    """Return t [ms] and P(W > t) where it is not rarer than `LEAST`; `waits` are sorted."""
    share = np.geomspace(1.0 - 1e-9, LEAST, POINTS)
    return np.quantile(waits, 1.0 - share) * 1e3, share
