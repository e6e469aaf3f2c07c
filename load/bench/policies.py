"""Our controller beside the policies people use: `python -m load.bench policies [SCENARIO…]`.

Every scenario of `../shared/traces/scenarios` is replayed for its first 36 hours by the same engine with
the same requests: by this program as it comes, told nothing but the scenario's objective; by each peer at
its documented default target and at 0.40, 0.50, … 0.90; and by the smallest fixed fleet that meets the
objective. To meet it means that at least 99 % of the requests waited no longer than the objective says, and
fewer than 95 % did in at most 2 % of the windows of five minutes.

The best peer of a scenario is the cheapest run that meets, its target chosen in hindsight for that very
scenario; GPU-hours are multiples of the clairvoyant bound.
"""

import argparse
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from load.bench.policies_field import FIXED, OURS, PEERS, field_of
from load.bench.policies_picture import draw
from load.bench.policies_record import Runs
from load.bench.policies_run import Result, run
from load.bench.policies_tables import print_bars, print_scenario, print_summary
from load.bench.scenarios import HOURS, SCENARIOS, scenario_names


def main() -> None:
    """Run, and print the tables."""
    there = scenario_names()
    if not there:
        sys.exit(f"there are no scenarios at {SCENARIOS}; put shared/traces beside the repository")
    options = _options(there)
    console = Console(width=130)
    runs = Runs(options.known, options.json, options.hours)
    by_scenario: dict[str, list[Result]] = {}
    for name, results in _finished(options.scenario or there, runs, options, console):
        by_scenario[name] = results
        print_scenario(console, name, results)
    print_summary(console, by_scenario)
    print_bars(console, by_scenario)
    if options.plot:
        draw(by_scenario, options.plot)


def _options(there: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m load.bench policies")
    parser.add_argument("scenario", nargs="*", choices=[*there, []], help="all by default")
    parser.add_argument(
        "--policy", action="append", default=[], choices=[*OURS, *PEERS, FIXED], help="only these"
    )
    parser.add_argument("--hours", type=float, default=HOURS, help="replayed of each [h] (default: 36)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes (default: one a core)")
    parser.add_argument("--plot", type=Path, help="picture to draw: FILE.svg or FILE.png")
    parser.add_argument("--json", type=Path, help="file to write every run to")
    parser.add_argument(
        "--known", type=Path, help="such a file; peers are not run again that stand in it (default: none)"
    )
    return parser.parse_args()


def _finished(
    names: list[str], runs: Runs, options: argparse.Namespace, console: Console
) -> Iterator[tuple[str, list[Result]]]:
    """Yield the results of one scenario after the other, in the order of the contenders."""
    contenders = field_of(options.policy)
    # Small fits get twenty times slower when each of several processes has threads of its own for them.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with (
        Progress(*columns, console=console, transient=True) as progress,
        ProcessPoolExecutor(options.jobs, get_context("spawn")) as pool,
    ):
        bar = progress.add_task("", total=len(names) * len(contenders))
        for name in names:
            progress.update(bar, description=name)
            missing = [contender for contender in contenders if runs.get(name, contender) is None]
            progress.advance(bar, len(contenders) - len(missing))
            for future in as_completed([pool.submit(run, name, options.hours, c) for c in missing]):
                runs.add(future.result())
                progress.advance(bar)
            yield name, [result for c in contenders if (result := runs.get(name, c)) is not None]


if __name__ == "__main__":
    main()
