"""The comparison as one picture: what each run cost, and how often it failed, a panel for each scenario."""

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from load.bench.policies_field import FIXED, LEAN, OURS, PEERS
from load.bench.policies_run import Result

BAD_WINDOWS_MAX = 0.02
_LEAST_SHOWN = 1e-3  # of bad windows: the logarithmic axis has no 0
_COST_MAX = 3.0  # times the bound: what lies beyond is drawn at the edge
_COLUMNS, _PANEL = 4, (3.6, 2.9)
_MARKS = "osD^v<>pPXh"


def draw(by_scenario: dict[str, list[Result]], file: Path) -> None:
    """Draw all runs into `file`, its kind by its ending."""
    rows = -(-(len(by_scenario) + 1) // _COLUMNS)
    figure = Figure(figsize=(_PANEL[0] * _COLUMNS, _PANEL[1] * rows), layout="constrained")
    panels = figure.subplots(rows, _COLUMNS, squeeze=False).ravel()
    for panel, (scenario, results) in zip(panels, by_scenario.items(), strict=False):
        _panel(panel, scenario, results)
    for panel in panels[len(by_scenario) :]:
        panel.axis("off")
    handles, labels = panels[0].get_legend_handles_labels()
    panels[len(by_scenario)].legend(handles, labels, loc="center", fontsize=8, frameon=False)
    figure.suptitle(
        "Lower left is better: cheaper, and fewer windows of 5 minutes in which requests waited too long"
    )
    figure.savefig(file)


def _panel(panel: Axes, scenario: str, results: list[Result]) -> None:
    panel.axhspan(BAD_WINDOWS_MAX, 1.0, color="0.93", zorder=0)
    for name, mark in zip(PEERS, _MARKS, strict=True):
        _runs(panel, name, [r for r in results if r.contender.name == name], marker=mark, s=22, alpha=0.75)
    _runs(panel, FIXED, [r for r in results if r.contender.name == FIXED], marker="|", s=80, color="black")
    for name, color in zip(OURS, ("tab:red", "tab:orange"), strict=True):
        ours = [r for r in results if r.contender.name == name]
        _runs(panel, name, ours, marker="*", s=190, color=color, edgecolor="black", zorder=5)
    panel.set(title=scenario, yscale="log", ylim=(_LEAST_SHOWN * 0.8, 1.0), xlim=(0.9, _COST_MAX + 0.1))
    panel.set_xlabel("GPU-hours / clairvoyant bound", fontsize=8)
    panel.set_ylabel("bad windows", fontsize=8)
    panel.tick_params(labelsize=7)


def _runs(panel: Axes, name: str, runs: list[Result], **style: object) -> None:
    label = name if name not in (*OURS, LEAN) else name.replace("autoscaler", "this program")
    costs = [min(run.cost, _COST_MAX) for run in runs]
    bad = [max(run.report.bad_windows, _LEAST_SHOWN) for run in runs]
    panel.scatter(costs, bad, label=label, **style)  # type: ignore[arg-type]
