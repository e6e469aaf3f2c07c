"""How good the forecasts are on real traffic, beside peers in the same run: `python -m load.bench forecast`.

The first table holds the bars. The forecaster that the program uses (`Chosen`) is fitted to the warm-up,
lives through the rest, and is fitted anew as the history grows: after a day, or a twentieth of what is known
if that is shorter, and sixty times at most; a controller does so every hour. At each count it says first and
learns then. Its mean absolute error is divided by that of persistence and of the same time yesterday and last
week, whichever of them is best at that horizon over the same counts.

The second table sets its quantiles beside those of statsforecast (AutoETS, MSTL) and statsmodels (ETSModel),
from fewer origins, since each of theirs is a fit: `load.bench.forecast_peers`.

Options: names of traces, to look at these alone; `--no-peers`.
"""

import math
import sys

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from forecasting.scores import pinball
from load.bench.forecast_cases import CASES, TRACES, Case, read
from load.bench.forecast_run import LEVELS, Run, lived, naive_mae

COVER_80, COVER_95 = (0.75, 0.85), (0.92, 0.98)


def bars(console: Console, cases: list[Case]) -> dict[str, Run]:
    """Measure and print the first table; return the runs by trace."""
    table = Table(title="Chosen forecaster, rolling origin", caption="* outside of its bar")
    for column in ("trace", "serves", "error / better naive", "by horizon", "bar", "80 %", "95 %"):
        table.add_column(column, justify="left" if column in ("trace", "serves") else "right")
    table.add_column("pinball 0.9, 0.99", justify="right")
    table.add_column("fit [s]", justify="right")
    table.add_column("update [µs]", justify="right")
    runs = {}
    for case in track(cases, "traces", console=console):
        series = read(case)
        runs[case.name] = run = lived(case, series)
        ratios = [said.mae / naive_mae(case, series, said) for said in run.said]
        covered = np.mean([said.coverage for said in run.said], axis=0)
        losses = [np.mean([pinball(s.came, s.quantiles[:, i], LEVELS[i]) for s in run.said]) for i in (0, 1)]
        table.add_row(
            case.name,
            run.chosen,
            _marked(float(np.mean(ratios)), (-math.inf, case.bar)),
            " ".join(f"{ratio:.2f}" for ratio in ratios),
            f"{case.bar:.2f}",
            _marked(float(covered[0]), COVER_80),
            _marked(float(covered[1]), COVER_95),
            ", ".join(f"{loss:.4g}" for loss in losses),
            f"{run.fit_seconds:.2f}",
            f"{run.update_microseconds:.0f}",
        )
    console.print(table)
    return runs


def _marked(value: float, bounds: tuple[float, float]) -> str:
    return f"{value:.3f}" + (" " if bounds[0] <= round(value, 3) <= bounds[1] else "*")


def main() -> None:
    """Print the tables."""
    asked = [argument for argument in sys.argv[1:] if not argument.startswith("-")]
    cases = [case for case in CASES if not asked or case.name in asked]
    if not cases:
        sys.exit(f"no trace is called {', '.join(asked)}; there are {', '.join(c.name for c in CASES)}")
    if not TRACES.is_dir():
        sys.exit(f"there are no traces at {TRACES}; put shared/traces beside the repository")
    console = Console(width=150)
    runs = bars(console, cases)
    if "--no-peers" not in sys.argv:
        from load.bench.forecast_peers import beside_peers  # noqa: PLC0415 - takes seconds to import

        beside_peers(console, [(case, read(case), runs[case.name]) for case in cases])


if __name__ == "__main__":
    main()
