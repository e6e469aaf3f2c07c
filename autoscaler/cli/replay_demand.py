"""From the file that was named to what is replayed: the demand, the law of service, what was known before."""

from collections.abc import Callable
from dataclasses import replace
from datetime import tzinfo
from pathlib import Path

from autoscaler.cli.replay_asked import Asked, moment_of, objective_of
from autoscaler.cli.replay_service import service_of
from autoscaler.errors import UsageError
from autoscaler.replay.output.lineup import REPLICAS_MOST
from autoscaler.replay.output.play import Stage
from autoscaler.replay.output.traffic_told import Told
from autoscaler.replay.output.words import span
from autoscaler.replay.policies import peak_replicas
from autoscaler.replay.scenario import Scenario
from autoscaler.telemetry.prometheus_meaning import Kind
from autoscaler.telemetry.traffic import Traffic, read_traffic
from autoscaler.units import format_duration, parse_duration
from forecasting.series import Series

_FINE = 1.0
"""Single requests are counted in steps of this length [s]."""
_HISTORY_STEP = 300.0
_LONG_ENOUGH = 7200.0
"""Some cold starts and windows of five minutes; less says little [s]."""
_FIRST_MINUTES = 300.0
_MODELS_NAMED = 3


def demand_of(asked: Asked, report: Callable[[str, float], None]) -> tuple[Stage, Told]:
    """Read the file and return what is replayed, and what people should know of it.

    Raises
    ------
    UsageError
        If that is impossible; the text names the option or the file, and the remedy.
    """
    traffic = _read(asked, asked.trace, asked.interval, report)
    series, bridged = traffic.bridged(_FINE)
    told = Told(asked.trace.name, traffic.form, (), _zone(asked, traffic, series))
    series = _cut(asked, series, told.clock)
    service = service_of(asked, traffic)
    scenario = service.of(_scenario(asked, series))
    scenario, start, known = _with_history(asked, scenario, series.start, report)
    try:
        scenario.check_size()
    except UsageError as error:
        raise UsageError(f"{asked.trace}: {error}") from error
    if not scenario.counts.sum() > 0:
        raise UsageError(
            f"{asked.trace}: no request is left to replay; give a file, or a part of it, that has some"
        )
    _check_fleet(asked, scenario)
    notes = (
        *_faults(traffic),
        *traffic.notes,
        bridged,
        *_models(traffic),
        *service.notes,
        known,
        _length(scenario),
    )
    told = replace(told, notes=tuple(_sentence(note) for note in notes if note))
    return Stage(_at_work(scenario), start, asked.gpus_per_replica), told


def _read(asked: Asked, path: Path, interval: float | None, report: Callable[[str, float], None]) -> Traffic:
    return read_traffic(
        path,
        interval=interval,
        duration_unit=asked.duration_unit,
        zone=asked.time_zone,
        only_model=asked.only_model,
        kind=Kind(asked.kind) if asked.kind else None,
        progress=lambda share: report(f"read {path.name}", share),
    )


def _zone(asked: Asked, traffic: Traffic, series: Series) -> str:
    """Return the name of the clock that people go by; nothing if times are relative."""
    return (asked.time_zone or traffic.zone or "UTC") if series.start else ""


def _cut(asked: Asked, series: Series, clock: tzinfo) -> Series:
    """Leave out what was not asked for."""
    first, last = 0, len(series)
    if asked.from_ is not None:
        first = round(moment_of("--from", asked.from_, series.start, clock) / series.interval)
    if asked.until is not None:
        last = round(moment_of("--until", asked.until, series.start, clock) / series.interval)
    first, last = max(0, first), min(last, len(series))
    if first >= last:
        option = f"--from {asked.from_}" if asked.from_ is not None else f"--until {asked.until}"
        span = format_duration(round(len(series) * series.interval))
        raise UsageError(f"{option}: leaves nothing of {asked.trace}, which spans {span}; leave more")
    return series[first:last]


def _scenario(asked: Asked, series: Series) -> Scenario:
    return Scenario(
        counts=series.values,
        interval=series.interval,
        service_time_mean=1.0,
        slots_per_replica=asked.slots,
        cold_start_mean=asked.cold_start,
        cold_start_cv=asked.cold_start_cv,
        objective=objective_of(asked),
        control_interval=asked.control_interval,
        supply_max=asked.supply_max,
        interruption_rate=asked.interruptions / 3600,
    )


def _with_history(
    asked: Asked, scenario: Scenario, start: float, report: Callable[[str, float], None]
) -> tuple[Scenario, float, str]:
    """Return the scenario with what was known before, when it begins, and a note."""
    given = asked.history
    if given is None:
        return scenario, start, "nothing was known before it began; --history gives our forecast a past"
    path = Path(given)
    try:
        seconds = parse_duration(given)
    except ValueError as error:
        if not path.is_file():
            raise UsageError(
                f"--history {given}: no such file, and no length of time; write 7d, or name a file"
            ) from error
    else:
        try:
            return scenario.learning_from(seconds), _later(start, seconds), ""
        except UsageError as error:
            raise UsageError(f"--history {given}: {asked.trace}: {error}") from error
    read = _read(asked, path, asked.history_interval or asked.interval, report)
    past, bridged = read.bridged(_HISTORY_STEP)
    if past.start and start:
        before = max(0, min(len(past), round((start - past.start) / past.interval)))
        past = past[:before]
    if not len(past):
        raise UsageError(f"--history {given}: holds nothing from before {asked.trace} begins")
    known = replace(scenario, history=past.values, history_interval=past.interval)
    return known, start, bridged


def _later(start: float, seconds: float) -> float:
    """Return a calendar time so much later, if there is one."""
    return start + seconds if start else 0.0


def _at_work(scenario: Scenario) -> Scenario:
    """Begin with a fleet that suits the first minutes."""
    first = max(1, round(_FIRST_MINUTES / scenario.interval))
    replicas = peak_replicas(replace(scenario, counts=scenario.counts[:first]))
    return scenario.starting_with(min(replicas, scenario.supply_max or replicas))


def _check_fleet(asked: Asked, scenario: Scenario) -> None:
    """Raise UsageError if the fleet for the peak is none that anybody has."""
    peak = peak_replicas(scenario)
    if peak > REPLICAS_MOST:
        raise UsageError(
            f"--service-time {format_duration(scenario.service_time_mean)}: the busiest 5 minutes take "
            f"{peak:,} replicas, more than the {REPLICAS_MOST:,} that can be replayed; check its unit, or "
            "raise --slots"
        )


def _faults(traffic: Traffic) -> tuple[str, ...]:
    return tuple(str(fault) for fault in traffic.faults)


def _models(traffic: Traffic) -> tuple[str, ...]:
    if len(traffic.models) < 2:
        return ()
    most = [f"{name} ({number:,})" for name, number in list(traffic.models.items())[:_MODELS_NAMED]]
    more = f" and {len(traffic.models) - _MODELS_NAMED} more" if len(traffic.models) > _MODELS_NAMED else ""
    return (f"it holds requests for several models, replayed as one pool: {', '.join(most)}{more}",)


def _length(scenario: Scenario) -> str:
    if scenario.duration >= _LONG_ENOUGH:
        return ""
    return f"it spans {span(scenario.duration)}, too little to tell more than how such minutes go"


def _sentence(note: str) -> str:
    return f"{note[0].upper()}{note[1:].rstrip('.')}."
