"""Single requests whose fields have names, whatever file they stand in."""

from collections.abc import Mapping
from dataclasses import replace
from math import isfinite, nan
from typing import Any

from autoscaler.telemetry.traffic.faults import FaultCount, LineUnusable
from autoscaler.telemetry.traffic.field_names import RequestFields
from autoscaler.telemetry.traffic.form import Told, Wanted
from autoscaler.telemetry.traffic.gathered import Gathered
from autoscaler.telemetry.traffic.paths import model_asked

_FAILED = 400


class NamedRequests:
    """Takes requests as mappings of names to values."""

    def __init__(self, wanted: Wanted) -> None:
        self._gathered = Gathered(wanted)
        self._left_out = 0

    def add(self, number: int, line: str, values: Mapping[str, Any], names: RequestFields) -> None:
        """Take in a request; raises LineUnusable if it cannot be used."""
        clock = self._gathered.clock
        time = clock.read(values[names.time], names.time_unit) - _whole(values, names)
        duration = None if names.duration is None else values.get(names.duration)
        unit = names.duration_unit
        if names.end is not None and (ended := values.get(names.end)) not in (None, ""):
            duration, unit = _between(time, clock.read(ended, names.time_unit)), "s"
        asked = model_asked(str(values.get(names.path))) if names.path else ""
        model = (values.get(names.model) if names.model else None) or asked
        self._gathered.ends = self._gathered.ends or names.time_ends
        self._gathered.add(
            number,
            line,
            time,
            duration,
            unit=unit,
            failed=names.status is not None and _is_failed(values.get(names.status)),
            model=str(model),
            tokens_in=_tokens(values.get(names.tokens_in)) if names.tokens_in else nan,
            tokens_out=_tokens(values.get(names.tokens_out)) if names.tokens_out else nan,
        )

        if names.left_out and isinstance(left_out := values.get(names.left_out), int):
            self._left_out += left_out

    def told(self, faults: FaultCount) -> Told:
        """Return the requests in the order of their arrival."""
        told = self._gathered.told(faults)
        if not self._left_out:
            return told
        note = f"{self._left_out:,} requests were left out of the log when it was written"
        return replace(told, notes=(*told.notes, note))


def _whole(values: Mapping[str, Any], names: RequestFields) -> float:
    """Return how long before its time a request arrived [s], where that is told."""
    whole = values.get(names.whole) if names.whole else 0.0
    if not isinstance(whole, int | float) or not whole >= 0:
        raise LineUnusable("the duration is no number")
    return whole


def _between(time: float, ended: float) -> float:
    if ended < time:
        raise LineUnusable("it ends before it begins")
    return ended - time


def _is_failed(status: object) -> bool:
    """Whether a status, a number or a word, is that of a failure; 0 is Envoy's for a client that left."""
    text = str(status).strip()
    return int(text) == 0 or int(text) >= _FAILED if text.isdecimal() else False


def _tokens(value: object) -> float:
    if value in (None, ""):
        return nan
    try:
        number = float(str(value))
    except ValueError:
        raise LineUnusable("the number of tokens is no number") from None
    if not (isfinite(number) and number >= 0):
        raise LineUnusable("the number of tokens is not a finite number >= 0")
    return number
