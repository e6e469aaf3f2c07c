"""`autoscaler plan`: from what was typed to an answer on the screen, as JSON, or as a picture."""

import json
import math
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.progress import Progress

from autoscaler.cli.plan_show import console, show_answer, show_day, show_notes, show_pools, span_in_words
from autoscaler.cli.plan_values import Values, Wrong, question_of, read_values
from autoscaler.cli.plan_words import READERS
from autoscaler.cli.plot_file import check_plot, draw
from autoscaler.errors import UsageError
from autoscaler.plan.answer import Answer, answer
from autoscaler.plan.curve import curve_of
from autoscaler.plan.day import Day, day_of
from autoscaler.plan.one_by_one import OneByOne
from autoscaler.plan.plain import answer_as_plain, finite
from autoscaler.plan.pools import answer_pools
from autoscaler.plan.question import Question
from autoscaler.plan.traffic import Profile, arrival_scv, profile_of
from autoscaler.plan.words import duration, rate
from autoscaler.telemetry.traffic import Traffic, read_traffic
from autoscaler.telemetry.traffic.durations import UNITS

_HOW_LONG = "say how long a request takes in a slot, as 10s, or give a batching or a step line"
_OF_FILES = ("from_", "interval", "duration_unit", "pools", "pool")


@dataclass(frozen=True, slots=True)
class Output:
    """How the answer is given."""

    as_json: bool
    plot: Path | None


def run_plan(given: Mapping[str, Any], output: Output) -> None:
    """Answer what was typed; `given` holds the options that were, by name.

    Raises
    ------
    UsageError
        If it is impossible; the text names the option, the value and the remedy.
    """
    check_plot(output.plot)
    files = {name: given[name] for name in _OF_FILES if name in given}
    words = {name: word for name, word in given.items() if name not in _OF_FILES}
    _check_files(files)
    try:
        if "pools" in files:
            _plan_pools(files["pools"], files.get("pool"), words, output)
        elif "from_" in files:
            _plan_traffic(files, read_values(words), output)
        else:
            _give(answer(question_of(read_values(words))), output)
    except Wrong as wrong:
        value = "" if wrong.given is None else f" {wrong.given}"
        raise UsageError(f"--{wrong.name.replace('_', '-')}{value}: {_as_options(wrong.remedy)}") from wrong


def _give(found: Answer, output: Output) -> None:
    if output.as_json:
        typer.echo(json.dumps(answer_as_plain(found), indent=2))
    else:
        show_answer(console(), found)
    _draw(found, output)


def _plan_pools(path: Path, only: str | None, words: Mapping[str, Any], output: Output) -> None:
    if words:
        name = next(iter(words)).replace("_", "-")
        raise UsageError(f"--{name}: write it into {path}, each pool has its own")
    from autoscaler.cli.plan_pools_file import read_pools  # noqa: PLC0415 - settings import every part

    questions = read_pools(path, only)
    if len(questions) == 1:
        _give(answer(next(iter(questions.values()))), output)
        return
    if output.plot is not None:
        raise UsageError(
            f"--plot {output.plot}: draws one pool; choose it with --pool, of {', '.join(questions)}"
        )
    pools = answer_pools(questions)
    if not output.as_json:
        show_pools(console(), pools)
        return
    plain = {
        "pools": {name: answer_as_plain(each) for name, each in pools.answers.items()},
        "replicas": pools.replicas,
        "cost_per_hour": pools.cost_per_hour,
        "one_for_all": answer_as_plain(pools.merged) if pools.merged else None,
        "hurt_by_merging": list(pools.hurt),
    }
    typer.echo(json.dumps(plain, indent=2))


def _plan_traffic(files: Mapping[str, Any], values: Values, output: Output) -> None:
    path = files["from_"]
    if "arrival_rate" in values:
        raise UsageError("--arrival-rate: leave it out, or --from: the file says how many requests come")
    traffic = _read(path, files)
    try:
        profile = profile_of(traffic)
    except ValueError as error:
        raise UsageError(f"{path}: {error}") from error
    question, notes = _question(traffic, profile, values)
    notes = (*profile.notes, *notes)
    peak, mean = answer(question), answer(replace(question, arrival_rate=profile.rate_mean))
    day = None
    if profile.shows_hours:
        day = day_of(profile, question, peak.recommended.replicas, mean.recommended.replicas)
    if output.as_json:
        plain = {
            **answer_as_plain(peak),
            "plans": {"peak_hour": answer_as_plain(peak), "mean": answer_as_plain(mean)},
            "traffic": _traffic_as_plain(traffic, profile, question, notes),
            "day": None if day is None else _day_as_plain(day),
        }
        typer.echo(json.dumps(plain, indent=2))
    else:
        _show_traffic(console(), traffic, profile, question, notes)
        if day is None:
            show_answer(console(), peak)
        else:
            _show_plans(console(), peak, mean, day)
    _draw(peak, output)


def _read(path: Path, files: Mapping[str, Any]) -> Traffic:
    interval, unit = files.get("interval"), files.get("duration_unit")
    if unit is not None and unit not in UNITS:
        raise UsageError(f"--duration-unit {unit}: s, ms, us or ns")
    seconds = read_values({"service_time": interval})["service_time"] if interval is not None else None
    progress = Progress(console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty())
    with progress:
        task = progress.add_task(f"read {path.name}", total=1.0)
        return read_traffic(
            path,
            interval=seconds,
            duration_unit=unit,
            progress=lambda share: progress.update(task, completed=share),
        )


def _question(traffic: Traffic, profile: Profile, values: Values) -> tuple[Question, tuple[str, ...]]:
    """Return the question for the peak hour: what was typed wins over what the file says."""
    told = {"arrival_rate": profile.rate_peak}
    step_line = "step_alpha" in values
    if step_line:
        told |= {"tokens_out": profile.tokens_out} if profile.tokens_out >= 1 else {}
        told |= (
            {"tokens_in": profile.tokens_in} if profile.tokens_in >= 1 and "prefill_rate" in values else {}
        )
    elif "batch_max" not in values and "batch_alpha" not in values:
        if profile.service_time_mean > 0:
            told["service_time"] = profile.service_time_mean
        elif "service_time" not in values:
            raise Wrong("service_time", f"is missing, and {traffic.path} does not tell: {_HOW_LONG}")
        if "service_time" not in values and "patience" not in values:
            told["service_scv"] = profile.service_scv
    question = question_of(told | dict(values))
    service = question.service
    if not isinstance(service, OneByOne):
        return question, ("arrivals are taken as Poisson, since the formula for this kind of service does",)
    if "arrival_scv" in values:
        return question, ()
    scv, how = arrival_scv(traffic, service.service_time_mean, service.service_scv)
    return replace(question, service=replace(service, arrival_scv=scv)), (how,)


def _show_traffic(
    out: Console, traffic: Traffic, profile: Profile, question: Question, notes: tuple[str, ...]
) -> None:
    unusable = f", {traffic.unusable:,} of them unusable" if traffic.unusable else ", all of them usable"
    out.print(
        f"{traffic.path}: {traffic.form}, {traffic.lines:,} lines{unusable}", soft_wrap=True, markup=False
    )
    for fault in traffic.faults:
        number, line = fault.examples[0]
        first = f"{fault.reason}; the first is line {number}: {line[:70]}"
        out.print(f"  {fault.count:,} line{'s' * (fault.count > 1)}: {first}", markup=False)
    rates = f"{rate(profile.rate_mean)} on average"
    if profile.shows_hours:
        rates += f", {rate(profile.rate_peak)} in the peak hour ({_when(profile)})"
    out.print(
        f"  {profile.requests:,} requests in {span_in_words(profile.span)}: {rates}, "
        f"{_service_in_words(question)}",
        soft_wrap=True,
    )
    show_notes(out, notes)


def _when(profile: Profile) -> str:
    """Say when the peak hour begins, by the clock of the file if its times are those of a calendar."""
    if math.isnan(profile.start):
        return f"from {profile.peak_start / 3600:.1f} h on"
    begins = datetime.fromtimestamp(profile.start + profile.peak_start, UTC)
    return f"from {begins:%Y-%m-%d %H:%M} on"


def _service_in_words(question: Question) -> str:
    service = question.service
    if isinstance(service, OneByOne):
        scvs = f"SCV of services {service.service_scv:.2g}, of arrivals {service.arrival_scv:.2g}"
        return f"{duration(service.service_time_mean)} a request ({scvs})"
    return f"a replica can finish {rate(service.capacity)}"


def _show_plans(out: Console, peak: Answer, mean: Answer, day: Day) -> None:
    for title, found in (("The peak hour", peak), ("The mean", mean)):
        out.print()
        out.rule(f"{title}, {rate(found.question.arrival_rate)}", align="left", style="bright_black")
        show_answer(out, found)
    out.print()
    out.rule("A fixed size through the day", align="left", style="bright_black")
    show_day(out, day, peak)


def _traffic_as_plain(
    traffic: Traffic, profile: Profile, question: Question, notes: tuple[str, ...]
) -> dict[str, Any]:
    told = asdict(profile)
    hours = [value if math.isfinite(value) else None for value in told.pop("hours").tolist()]
    service = question.service
    return {
        "file": str(traffic.path),
        "form": traffic.form,
        "lines": traffic.lines,
        "unusable": traffic.unusable,
        "faults": [asdict(fault) for fault in traffic.faults],
        **finite(told),
        "arrival_scv": service.arrival_scv if isinstance(service, OneByOne) else None,
        "hours": hours,
        "notes": list(notes),
    }


def _day_as_plain(day: Day) -> dict[str, Any]:
    plain = asdict(day)
    arrays = {name: plain[name].tolist() for name in ("rates", "needed", "utilization")}
    return {**plain, **arrays, "saved": day.saved}


def _draw(found: Answer, output: Output) -> None:
    if output.plot is None:
        return
    curve = curve_of(found)

    def png(path: Path) -> None:
        from autoscaler.plan.picture_png import write_png  # noqa: PLC0415 - an optional library

        write_png(curve, path)

    def html(path: Path) -> None:
        from autoscaler.plan.picture_html import write_html  # noqa: PLC0415 - an optional library

        write_html(curve, path)

    draw(output.plot, png, html)


def _check_files(files: Mapping[str, Any]) -> None:
    """Raise UsageError if options about files stand without their file, or for two."""
    if "from_" in files and "pools" in files:
        raise UsageError("--pools: leave it out, or --from: a file of traffic is one pool's")
    for name, needs, option in (
        ("pool", "pools", "--pools FILE"),
        ("interval", "from_", "--from FILE"),
        ("duration_unit", "from_", "--from FILE"),
    ):
        if name in files and needs not in files:
            raise UsageError(f"--{name.replace('_', '-')} {files[name]}: says nothing without {option}")


def _as_options(text: str) -> str:
    """Write the names in a remedy as the options they are on the command line."""
    for name in READERS:
        if "_" in name:
            text = text.replace(name, f"--{name.replace('_', '-')}")
    return text
