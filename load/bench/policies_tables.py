"""The tables of the comparison, and its bars."""

import math
from collections.abc import Iterable
from statistics import fmean

from rich.console import Console
from rich.table import Table

from load.bench.policies_field import FIXED, LEAN, OURS, PEERS
from load.bench.policies_run import Result

BY_SCENARIO_MAX, ON_AVERAGE_MAX, OF_DEFAULTS_MAX = 1.05, 0.88, 0.80
IN_BAND_MIN, IN_BAND_SCENARIOS = 0.80, ("taxi", "wiki", "chat-slots")
COLD_MAX, COLD, WARM = 1.25, "nasa-cold", "nasa-day"
LEAN_MAX = 0.92

Results = dict[str, list[Result]]


def best_peer(results: Iterable[Result]) -> Result | None:
    """Return the cheapest run of anyone else that meets the objective; None if none does."""
    meeting = [result for result in results if result.contender.name not in OURS and result.meets]
    return min(meeting, key=lambda result: result.cost, default=None)


def own(results: Iterable[Result], name: str = "autoscaler") -> Result | None:
    """Return the run of this program under that name; None if it was not asked for."""
    return next((result for result in results if result.contender.name == name), None)


def print_scenario(console: Console, name: str, results: list[Result]) -> None:
    """Print each contender at its default, and the best of its sweep beside it."""
    bound = results[0].report.clairvoyant_gpu_hours
    table = Table(title=f"{name}: GPU-hours as a multiple of {bound:.0f} (clairvoyant)")
    table.add_column("policy")
    for column in ("target", "GPU-hours", "objective met", "bad windows", "in band", "wait p99 [s]", "meets"):
        table.add_column(column, justify="right")
    best = best_peer(results)
    for result in _shown(results):
        target = "" if result.contender.target is None else f"{result.contender.target:.2f}"
        table.add_row(
            result.report.policy if result.contender.name == FIXED else result.contender.name,
            target + (" default" if result.contender.default else ""),
            f"{result.cost:.2f}",
            f"{result.report.objective_met:.3f}",
            f"{result.report.bad_windows:.3f}",
            f"{result.report.time_in_band:.2f}",
            f"{result.report.wait_p99:.1f}",
            ("best peer" if result is best else "yes") if result.meets else "no",
            style="bold" if result.contender.name in OURS or result is best else None,
        )
    console.print(table)


def _shown(results: list[Result]) -> list[Result]:
    shown = [result for result in results if result.contender.target is None]
    for peer in PEERS:
        runs = [result for result in results if result.contender.name == peer]
        if runs:
            tuned = best_peer(runs) or min(runs, key=lambda result: result.report.bad_windows)
            shown += [run for run in runs if run.contender.default or run is tuned]
    return shown


def print_summary(console: Console, by_scenario: Results) -> None:
    """Print ours beside the best peer of each scenario, and beside each peer at its default."""
    table = Table(title="Ours and the best peer, its target chosen in hindsight")
    for column in ("scenario", "policy", "GPU-hours", "bad windows", "in band", "meets", "best peer"):
        table.add_column(column, justify="left" if column in ("scenario", "policy", "best peer") else "right")
    table.add_column("its GPU-hours", justify="right")
    table.add_column("ratio", justify="right")
    for scenario, results in by_scenario.items():
        best = best_peer(results)
        for ours in (result for result in results if result.contender.name in OURS):
            table.add_row(
                scenario,
                ours.contender.name,
                f"{ours.cost:.2f}",
                f"{ours.report.bad_windows:.3f}",
                f"{ours.report.time_in_band:.2f}",
                "yes" if ours.meets else "no",
                best.report.policy if best else "none",
                f"{best.cost:.2f}" if best else "",
                f"{ours.cost / best.cost:.3f}" if best else "",
            )
    console.print(table)
    _print_defaults(console, by_scenario)


def _print_defaults(console: Console, by_scenario: Results) -> None:
    table = Table(title="Ours and each peer at its default target, means over the scenarios")
    table.add_column("peer")
    for column in ("GPU-hours", "bad windows", "meets", "ours / its GPU-hours", "our bad windows"):
        table.add_column(column, justify="right")
    for peer in PEERS:
        pairs = _default_pairs(by_scenario, peer)
        if pairs:
            table.add_row(
                peer,
                f"{fmean(theirs.cost for _, theirs in pairs):.2f}",
                f"{fmean(theirs.report.bad_windows for _, theirs in pairs):.3f}",
                f"{sum(theirs.meets for _, theirs in pairs)} of {len(pairs)}",
                f"{fmean(ours.cost / theirs.cost for ours, theirs in pairs):.3f}",
                f"{fmean(ours.report.bad_windows for ours, _ in pairs):.3f}",
            )
    console.print(table)


def _default_pairs(by_scenario: Results, peer: str) -> list[tuple[Result, Result]]:
    """Our run and the peer's at its default target, of each scenario that has both."""
    pairs = []
    for results in by_scenario.values():
        ours = own(results)
        pairs += [(ours, r) for r in results if ours and r.contender.name == peer and r.contender.default]
    return pairs


def print_bars(console: Console, by_scenario: Results) -> None:
    """Print which bars are reached."""
    ours = {scenario: run for scenario, results in by_scenario.items() if (run := own(results))}
    if not ours:
        return
    missed = [scenario for scenario, run in ours.items() if not run.meets]
    _bar(console, "meets the objective everywhere", not missed, f"not on {', '.join(missed) or 'none'}")
    ratios = {
        scenario: ours[scenario].cost / best.cost
        for scenario, results in by_scenario.items()
        if scenario in ours and (best := best_peer(results))
    }
    if ratios:
        worst = max(ratios, key=lambda scenario: ratios[scenario])
        said = f"{ratios[worst]:.3f} on {worst}"
        _bar(console, f"≤ {BY_SCENARIO_MAX} × the best peer on each", ratios[worst] <= BY_SCENARIO_MAX, said)
        mean = fmean(ratios.values())
        _bar(console, f"≤ {ON_AVERAGE_MAX} × on average", mean <= ON_AVERAGE_MAX, f"{mean:.3f}")
    pairs = [pair for peer in PEERS for pair in _default_pairs(by_scenario, peer)]
    if pairs:
        mean, bad = _against(pairs)
        reached = mean <= OF_DEFAULTS_MAX and bad[0] < bad[1]
        said = f"{mean:.3f}, bad windows {bad[0]:.3f} to {bad[1]:.3f}"
        meeting = [pair for pair in pairs if pair[1].meets]
        if meeting:
            said += f"; against the {len(meeting)} of {len(pairs)} runs that meet, {_against(meeting)[0]:.3f}"
        _bar(console, f"≤ {OF_DEFAULTS_MAX} × peers at their defaults, fewer bad windows", reached, said)
    banded = {name: ours[name].report.time_in_band for name in IN_BAND_SCENARIOS if name in ours}
    if banded:
        said = ", ".join(f"{name} {share:.2f}" for name, share in banded.items())
        _bar(console, f"in band ≥ {IN_BAND_MIN}", min(banded.values()) >= IN_BAND_MIN, said)
    lean = [
        run.cost / best.cost if run.meets else math.inf
        for scenario in IN_BAND_SCENARIOS
        for run in by_scenario.get(scenario, ())
        if run.contender.name == LEAN and (best := best_peer(by_scenario[scenario]))
    ]
    if lean:
        said = f"{fmean(lean):.3f} ({', '.join(f'{ratio:.3f}' for ratio in lean)})"
        _bar(console, f"lean ≤ {LEAN_MAX} × the best peer on average", fmean(lean) <= LEAN_MAX, said)
    if COLD in ours and WARM in ours:
        ratio = ours[COLD].report.gpu_hours / ours[WARM].report.gpu_hours
        _bar(console, f"starts of 600 s ≤ {COLD_MAX} × those of 120 s", ratio <= COLD_MAX, f"{ratio:.3f}")


def _against(pairs: list[tuple[Result, Result]]) -> tuple[float, tuple[float, float]]:
    """Mean ratio of our GPU-hours to theirs, and both means of bad windows."""
    bad = fmean(run.report.bad_windows for run, _ in pairs), fmean(r.report.bad_windows for _, r in pairs)
    return fmean(run.cost / theirs.cost for run, theirs in pairs), bad


def _bar(console: Console, bar: str, reached: bool, said: str) -> None:
    console.print(f"{'reached' if reached else 'MISSED '}  {bar}: {said}", highlight=False)
