"""The configuration for the traffic that was replayed, ready to paste, each value with its reason.

Only what follows from the traffic and the circumstances is written; everything else keeps its default.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, exp, log, sqrt
from textwrap import wrap

import numpy as np

from autoscaler.replay.output.play import Played
from autoscaler.replay.output.standing import Outcome
from autoscaler.replay.output.words import count, span
from autoscaler.replay.scenario import Scenario
from autoscaler.units import format_duration, format_fraction
from forecasting.seasons import DAY, seasons
from forecasting.series import Series

_ROOM_TO_GROW = 1.5
_LONGEST_QUANTILE = 3.09
"""One request in a thousand is served longer: 0.999 quantile of the normal law [1]."""
_WAIT_MAX, _FIRST_BYTE, _DRAIN = 60.0, 300.0, 60.0
"""Defaults of the program that long waits and services exceed [s]."""
_BIN = 1800.0
_MINUTE = 60.0
_WIDTH = 96
"""Of a line of the file [characters]."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One value.

    Attributes
    ----------
    section : str
        Where it stands: `pool`, `objective`, `scaling`, `queue`, `timeouts`, `platform`, or `` for the top.
    key, value : str
        As written.
    why : str
        The reason, a sentence without its stop; empty if it only repeats what was replayed.
    """

    section: str
    key: str
    value: str
    why: str = ""


def settings_for(outcome: Outcome) -> tuple[Setting, ...]:
    """Return what follows from the replay of our controller; nothing if that was not finished."""
    if outcome.own is None:
        return ()
    return tuple(_settings(outcome, outcome.own.played))


def _settings(outcome: Outcome, played: tuple[Played, ...]) -> Iterator[Setting]:
    scenario = outcome.stage.scenario
    objective, longest = scenario.objective, _longest_service(scenario)
    yield Setting("", "control_interval", format_duration(scenario.control_interval))
    if longest > _DRAIN:
        yield Setting(
            "",
            "drain",
            f"{{max: {_rounded_up(longest)}}}",
            f"one request in a thousand is served longer than {span(longest)}; on a stop it may still end",
        )
    yield Setting(
        "pool", "slots_per_replica", str(scenario.slots_per_replica), "requests a replica serves at a time"
    )
    yield Setting("objective", "wait", format_duration(objective.wait_seconds))
    yield Setting("objective", "quantile", format_fraction(objective.wait_quantile))
    yield Setting("objective", "utilization_low", format_fraction(objective.utilization_low))
    yield Setting("objective", "utilization_high", format_fraction(objective.utilization_high))
    yield from _scaling(outcome, played)
    if objective.wait_seconds > _WAIT_MAX / 2:
        yield Setting(
            "queue",
            "wait_max",
            _rounded_up(3 * objective.wait_seconds),
            "who waits longer is told so; above the wait that is still good",
        )
    if longest > _FIRST_BYTE:
        yield Setting(
            "timeouts",
            "first_byte",
            _rounded_up(2 * longest),
            f"one request in a thousand is served longer than {span(longest)}",
        )
    yield Setting(
        "platform",
        "cold_start_initial",
        format_duration(max(scenario.cold_start_mean, 0.001)),
        "what a start is taken to last until one was measured",
    )


def _scaling(outcome: Outcome, played: tuple[Played, ...]) -> Iterator[Setting]:
    least = min(each.replicas_least for each in played)
    most = max(each.replicas_most for each in played)
    floor, ceiling = max(1, least // 2), max(1, ceil(most * _ROOM_TO_GROW))
    spare = "; half of that costs nothing, and is there if demand is misjudged" if least > 1 else ""
    yield Setting(
        "scaling",
        "replicas_min",
        str(floor),
        f"it never went below {count(least, 'replica')} here{spare}",
    )
    hourly = (
        f", at most {outcome.price.of(ceiling * outcome.stage.gpus_per_replica)} an hour"
        if outcome.price
        else ""
    )
    supply = outcome.stage.scenario.supply_max
    if supply is not None:
        yield Setting("scaling", "replicas_max", str(max(supply, floor)), "no more can be had")
        return
    yield Setting(
        "scaling",
        "replicas_max",
        str(ceiling),
        f"it never had more than {count(most, 'replica')} here; half as many again leave room to "
        f"grow{hourly}",
    )


def forecast_told(outcome: Outcome) -> str:
    """Say which rhythm the demand has, and so whether weeks of history are worth importing."""
    scenario = outcome.stage.scenario
    series = _demand(scenario)
    told = "; import what you have before the first start: autoscaler history import"
    if series is None or len(series) * series.interval < 2 * DAY:
        return f"The traffic is too short to show a rhythm of the day{told}."
    found = [season for season in seasons(series) if season.period == DAY]
    if not found:
        return "No rhythm of the day is seen in it: the forecast will follow the last minutes."
    return f"The time of day explains {found[0].explained:.0%} of its ups and downs{told}."


def as_yaml(settings: tuple[Setting, ...], name: str) -> str:
    """Write a configuration file for the traffic called `name`."""
    lines = [
        f"# For the traffic of {' '.join(name.split())}. Validate it with: autoscaler check -c FILE",
        *_lines(settings, "", 0),
        "pools:",
        "  main:",
        *_lines(settings, "pool", 4),
    ]
    for section in ("objective", "queue", "timeouts", "scaling"):
        inside = _lines(settings, section, 6)
        lines += [f"    {section}:", *inside] if inside else []
    lines += [
        "    platform:",
        "      # Your servers; or kind: local, with the command that starts one.",
        "      kind: static",
        "      urls: [http://127.0.0.1:9001]",
        *_lines(settings, "platform", 6),
    ]
    return "\n".join(lines) + "\n"


def _lines(settings: tuple[Setting, ...], section: str, indent: int) -> list[str]:
    """Write the settings of a section, each below its reason."""
    lines, margin = [], " " * indent
    for each in settings:
        if each.section == section:
            why = f"{each.why[:1].upper()}{each.why[1:]}." if each.why else ""
            lines += wrap(why, _WIDTH, initial_indent=f"{margin}# ", subsequent_indent=f"{margin}# ")
            lines.append(f"{margin}{each.key}: {each.value}")
    return lines


def _longest_service(scenario: Scenario) -> float:
    """Return a service time that one request in a thousand exceeds, by the lognormal law [s]."""
    variance = log(1 + scenario.service_scv)
    return scenario.service_time_mean * exp(_LONGEST_QUANTILE * sqrt(variance) - variance / 2)


def _rounded_up(seconds: float) -> str:
    return format_duration(ceil(seconds / _MINUTE) * _MINUTE)


def _demand(scenario: Scenario) -> Series | None:
    """Return history and demand in bins of half an hour; None if they do not fit into such."""
    parts = []
    for counts, interval in (
        (scenario.history, scenario.history_interval),
        (scenario.counts, scenario.interval),
    ):
        per_bin = round(_BIN / interval)
        if per_bin < 1 or abs(per_bin * interval - _BIN) > 1e-6:
            return None
        whole = len(counts) // per_bin * per_bin
        parts.append(np.nansum(counts[len(counts) - whole :].reshape(-1, per_bin), axis=1))
    joined = np.concatenate(parts)
    return Series(joined, _BIN) if len(joined) else None
