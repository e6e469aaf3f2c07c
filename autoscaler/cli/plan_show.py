"""Prints answers: the table around an answer, why, what else it could be, and the day of a fixed fleet."""

import math
import sys
from collections.abc import Callable, Collection, Iterable
from itertools import compress

from rich.console import Console
from rich.table import Table
from rich.text import Text

from autoscaler.cli.narrow import fitting
from autoscaler.plan.answer import Answer, Row
from autoscaler.plan.conflict import conflict_of
from autoscaler.plan.day import Day, FixedFleet
from autoscaler.plan.pools import Pools
from autoscaler.plan.words import (
    alternatives,
    band,
    busy,
    busy_word,
    conflict,
    duration,
    fleet,
    money,
    percent,
    rate,
    recommendation,
)

_CHOSEN, _QUIET, _WARNING = "bold", "bright_black", "yellow"
_WIDTH_OF_PIPE = 160
"""Columns of what goes into a file or a pipe, which has no width of its own."""
_BAR_MAX, _BAR_MIN = 24, 6
_BESIDE_BAR = 40
"""Columns that the rest of its row takes."""
_NEVER = 1e-9
"""Probabilities below are shown as 0."""
_MORE: dict[str, tuple[str, Callable[[float], str]]] = {
    "fraction_lost": ("give up", percent),
    "batch_mean": ("batch", lambda size: f"{size:.1f}"),
    "occupancy": ("occupied", percent),
    "requests_mean": ("in a replica", lambda size: f"{size:.1f}"),
    "first_token_mean": ("first token", duration),
    "time_per_token_mean": ("per token", duration),
}
"""Figures of some kinds of service: heading, and how they are said."""
_DISPENSABLE = (
    "P(wait)",
    "occupied",
    "in a replica",
    "batch",
    "mean wait",
    "p95",
    "give up",
    "per token",
    "first token",
    "in band",
    "wait kept",
)
"""Left out of the table in this order where a terminal is narrow; `--json` has them."""
_DISPENSABLE_OF_POOLS = ("objective", "rate", "in band", "utilization", "servers", "wait")


def console() -> Console:
    """Return where answers are printed."""
    return Console(width=None if sys.stdout.isatty() else _WIDTH_OF_PIPE, highlight=False)


def show_answer(out: Console, answer: Answer) -> None:
    """Print the table, the recommendation, the alternatives, and a conflict if there is one."""
    decides = {None: "mean wait", 0.95: "p95"}.get(answer.question.wait.quantile)
    dispensable = [heading for heading in _DISPENSABLE if heading != decides]
    out.print(fitting(out, lambda without: table(answer, without), dispensable))
    out.print()
    _say(out, recommendation(answer), _CHOSEN)
    out.print()
    _print_list(out, alternatives(answer))
    found = conflict_of(answer)
    if found is not None:
        problem, *remedies = conflict(found, answer.question)
        out.print()
        _say(out, problem, _WARNING)
        _print_list(out, remedies)


def table(answer: Answer, without: Collection[str] = ()) -> Table:
    """Put the sizes around the answer below one another, without the columns of some headings."""
    question, with_slots = answer.question, answer.question.service.slots_per_replica > 1
    other = question.wait.quantile not in (0.95, 0.99, None)
    more = [name for name in _MORE if name in answer.recommended.more]
    shown = Table(box=None, padding=(0, 2, 0, 0), header_style=_QUIET)
    shown.add_column("", no_wrap=True)
    headings = ["replicas"] * with_slots + [
        "servers",
        busy_word(question),
        "P(wait)",
        "mean wait",
        "p95",
        "p99",
    ]
    headings += [str(question.wait)] * other + [_MORE[name][0] for name in more]
    headings += ["wait kept", "in band", "cost an hour" if question.price is not None else "replica-hours/h"]
    stays = [heading not in without for heading in headings]
    for heading in compress(headings, stays):
        shown.add_column(heading, justify="right", no_wrap=True)
    for row in answer.rows:
        chosen = row.replicas == answer.recommended.replicas
        cells = [f"{row.replicas:,}"] * with_slots + [f"{row.servers:,}", f"{100 * row.utilization:.1f} %"]
        cells += [_probability(row.probability_of_wait), *_waits(row)]
        cells += [duration(row.wait_bound)] * other + [_MORE[name][1](row.more[name]) for name in more]
        cells += [_yes(row.keeps_wait), _yes(row.in_band), money(question, row.cost_per_hour)]
        shown.add_row("→" if chosen else "", *compress(cells, stays), style=_CHOSEN if chosen else None)
    return shown


def show_pools(out: Console, pools: Pools) -> None:
    """Print a row for each pool, why each is so large, and what one pool for all would take."""
    out.print(fitting(out, lambda without: _pools_table(pools, without), _DISPENSABLE_OF_POOLS))
    out.print()
    _say(out, _pools_in_words(pools), _CHOSEN)
    out.print()
    for name, each in pools.answers.items():
        _say(out, f"{name}: {recommendation(each)}")
        found = conflict_of(each)
        if found is not None:
            problem, *remedies = conflict(found, each.question)
            _say(out, problem, _WARNING)
            _print_list(out, remedies)


def _pools_table(pools: Pools, without: Collection[str]) -> Table:
    priced = any(each.question.price is not None for each in pools.answers.values())
    cost = "cost an hour" if priced else "replica-hours/h"
    headings = ["rate", "replicas", "servers", "utilization", "wait", "objective", "in band", "binding", cost]
    stays = [heading not in without for heading in headings]
    shown = Table(box=None, padding=(0, 2, 0, 0), header_style=_QUIET)
    shown.add_column("pool", overflow="fold")
    for heading in compress(headings, stays):
        shown.add_column(heading, justify="right")
    merged = {} if pools.merged is None else {"one for all": pools.merged}
    for name, each in {**pools.answers, **merged}.items():
        cells = compress(_pool_cells(each), stays)
        shown.add_row(name, *cells, style=_QUIET if name in merged else None)
    return shown


def _pool_cells(answer: Answer) -> list[str]:
    row, question = answer.recommended, answer.question
    return [
        rate(question.arrival_rate),
        f"{row.replicas:,}",
        f"{row.servers:,}",
        busy(row.utilization, question),
        f"{question.wait} {duration(row.wait_bound)}",
        f"{question.wait} < {duration(question.wait.seconds)}",
        _yes(row.in_band),
        answer.binding.value,
        money(question, row.cost_per_hour),
    ]


def _pools_in_words(pools: Pools) -> str:
    some = next(iter(pools.answers.values())).question
    cost = f", {money(some, pools.cost_per_hour)} an hour" if some.price is not None else ""
    text = f"{pools.replicas:,} replicas in {len(pools.answers)} pools{cost}."
    if pools.merged is None:
        return text
    saved = pools.replicas - pools.merged.recommended.replicas
    text += f" One pool for all would take {fleet(pools.merged.question, pools.merged.recommended.replicas)}"
    text += f", {abs(saved):,} {'fewer' if saved >= 0 else 'more'}" if saved else ", as many"
    if pools.hurt:
        text += f"; {', '.join(pools.hurt)} would wait longer in it, on average"
    return f"{text}."


def show_day(out: Console, day: Day, answer: Answer) -> None:
    """Print what a fleet for the peak hour does through the day, hour by hour, and in sentences."""
    question = answer.question
    averaged = f", mean of {day.averaged_days} days" if day.averaged_days > 1 else ""
    shown = Table(box=None, padding=(0, 2, 0, 0), header_style=_QUIET)
    title = f"{fleet(question, day.for_peak.replicas)}, fixed: {busy_word(question)}"
    for heading in ("hour", "rate", "replicas needed"):
        shown.add_column(heading, justify="right")
    shown.add_column(f"{title} (band {band(question)}{averaged})")
    width = max(_BAR_MIN, min(_BAR_MAX, out.width - _BESIDE_BAR))
    for number in range(len(day.rates)):
        share = float(day.utilization[number])
        shown.add_row(
            f"{(day.first_hour + number) % 24:02d}",
            rate(float(day.rates[number])),
            f"{day.needed[number]:,.0f}",
            _bar(share, width, answer).append(f" {percent(share)}"),
        )
    out.print(shown)
    out.print()
    _print_list(out, day_in_words(day, answer))


def day_in_words(day: Day, answer: Answer) -> list[str]:
    """Say what fixed fleets do through the day, and what following the demand would save."""
    peak, mean = day.for_peak, day.for_mean
    return [
        f"Fixed for the peak hour, {_fixed(answer, peak)}: {busy(peak.utilization, answer.question)} on "
        f"average; {percent(peak.hours_idle)} of the hours below the band, {percent(peak.hours_in_band)} "
        "inside.",
        f"Fixed for the mean, {_fixed(answer, mean)}: too few in {percent(mean.hours_missed)} of the hours, "
        f"in which {percent(mean.requests_missed)} of the requests come.",
        f"A fleet that followed each hour would take {day.replica_hours_sized:,.1f} replica-hours an hour, "
        f"{percent(day.saved)} less than the fixed one for the peak hour"
        + (f": {money(answer.question, _saved_a_day(day, answer))} a day." if answer.question.price else "."),
    ]


def show_notes(out: Console, notes: Iterable[str]) -> None:
    """Print what should be known of the numbers."""
    for note in notes:
        _say(out, f"  {note[0].upper()}{note[1:]}.", _QUIET)


def _fixed(answer: Answer, fixed: FixedFleet) -> str:
    return fleet(answer.question, fixed.replicas)


def _saved_a_day(day: Day, answer: Answer) -> float:
    return 24 * answer.question.cost_per_hour(1) * (day.for_peak.replicas - day.replica_hours_sized)


def _bar(share: float, width: int, answer: Answer) -> Text:
    filled, wanted = round(min(1.0, share) * width), answer.question.band
    style = "green" if wanted.holds(share) else _WARNING
    text = Text("━" * filled, style)
    return text.append("·" * (width - filled), _QUIET)


def _probability(probability: float) -> str:
    if probability < 0.0005:
        return "<0.001" if probability > _NEVER else "0"
    return f"{probability:.3f}"


def _waits(row: Row) -> list[str]:
    return [duration(wait) for wait in (row.wait_mean, row.wait_p95, row.wait_p99)]


def _yes(kept: bool) -> str:
    return "yes" if kept else "–"


def _print_list(out: Console, lines: Iterable[str]) -> None:
    for line in lines:
        _say(out, f"  · {line}")


def _say(out: Console, text: str, style: str = "") -> None:
    """Print a sentence; a file or a pipe has it in one line."""
    out.print(Text(text, style), soft_wrap=not out.is_terminal)


def span_in_words(seconds: float) -> str:
    """Say how long a file spans: "58 minutes", "27 days"."""
    for unit, name in ((86_400.0, "days"), (3600.0, "hours"), (60.0, "minutes")):
        if seconds >= 2 * unit:
            return f"{seconds / unit:.3g} {name}"
    return f"{math.ceil(seconds)} seconds"
