"""Which field of a table, or key of a JSON object, tells what; known by its name.

Neither case nor punctuation counts: `startTime`, `start_time` and `Start Time` are one name. A unit may
follow (`latency_ms`, `Duration (s)`, `timestampNs`). Of several names the first of a list here is taken.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from autoscaler.telemetry.traffic.durations import UNITS


def _names(words: str) -> tuple[str, ...]:
    return tuple(words.split())


_STARTS = _names(
    "arrival arrivaltime arrived arrivedat arrivaltimestamp requestdate requesttimestamp start starttime "
    "started startedat startutc starttimeiso begin begintime receivedat requestedat createdat"
)
_TIMES = _names("timestamp time ts datetime timeiso8601 timelocal msec eventtime date created ds")
_ENDS = _names("end endtime ended endedat finished finishedat completedat completiontime")
_DURATIONS = _names(
    "servicetime duration requesttime latency responsetime elapsed elapsedtime took processingtime totaltime "
    "totallatency runtime requestduration requestlatency"
)
_TOKENS_IN = _names(
    "inputtokens prompttokens tokensin contexttokens requesttokens inputlength numprompttokens "
    "numinputtokens prompttokencount inputtokencount ncontexttokenstotal"
)
_TOKENS_OUT = _names(
    "outputtokens completiontokens tokensout generatedtokens responsetokens outputlength numcompletiontokens "
    "numoutputtokens completiontokencount outputtokencount ngeneratedtokenstotal"
)
_STATUSES = _names("status statuscode httpstatus httpstatuscode responsecode downstreamstatus code")
_MODELS = _names("model modelname modelid deployment deploymentname snapshotid")
_PATHS = _names("path uri requesturi requestpath url requesturl request route")
_COUNTS = _names("requests nummodelrequests nrequests numrequests requestcount")
_COUNTS_BESIDE_A_TIME = _names("count counts hits value y")
_DURATION_MARKS = {"responseflags": "ms", "upstreamservicetime": "ms", "startutc": "ns"}
"""Envoy's JSON counts the duration in ms, Traefik's in ns; neither says so."""
_TIME_MARKS = {"hashids": 1e-3}
"""Traces in the form of Mooncake's count milliseconds from their start."""
_OWN_LOG = {"queueseconds", "serviceseconds", "totalseconds"}
_LOGGED_AT_END = "requesttime"
"""nginx writes its line when the request has ended."""
_UNIT_WORDS = {
    "milliseconds": "ms",
    "microseconds": "us",
    "nanoseconds": "ns",
    "seconds": "s",
    "millis": "ms",
    "micros": "us",
    "nanos": "ns",
    "secs": "s",
    "sec": "s",
    "ms": "ms",
    "us": "us",
    "ns": "ns",
    "s": "s",
}
Value = TypeVar("Value")
_PUNCTUATION = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True, slots=True)
class RequestFields:
    """Under which names single requests tell what is wanted; None where they do not.

    `time_ends` says that the time is that of the end; `end` is a second time, if no duration is told. This
    program's own log tells apart what a request waited and how long it was served: then `whole` [s] is both
    together, and `left_out` how many lines were left out before.
    """

    time: str
    time_unit: float | None
    time_ends: bool
    end: str | None
    duration: str | None
    duration_unit: str | None
    tokens_in: str | None
    tokens_out: str | None
    status: str | None
    model: str | None
    path: str | None
    whole: str | None = None
    left_out: str | None = None


@dataclass(frozen=True, slots=True)
class CountFields:
    """Under which names counts tell what is wanted; None where they do not.

    Attributes
    ----------
    empty_is_zero : bool
        Whether a row without a count had no requests: OpenAI lists every bucket.
    labelled : bool
        Whether there are more columns, so that an interval may have several rows, to be added up.
    """

    count: str
    start: str | None
    start_unit: float | None
    end: str | None
    length: str | None
    filled: str | None
    tokens_in: str | None
    tokens_out: str | None
    model: str | None
    empty_is_zero: bool
    labelled: bool = False


def plain(name: str) -> str:
    """Return a name without case and punctuation."""
    return _PUNCTUATION.sub("", name.lower().replace("µ", "u").replace("μ", "u"))


def request_fields(fields: Sequence[str]) -> RequestFields | None:
    """Return which of `fields` tells what, or None if none is a time of arrival."""
    # `start_s` is where an interval starts, in tables that are no requests.
    names = {plain(field): field for field in fields if field.strip().lower() != "start_s"}
    if names.keys() >= _OWN_LOG | {"time"}:
        return _of_own_log(names)
    time, time_unit = _with_unit(_STARTS + _TIMES, names)
    end, end_unit = _with_unit(_ENDS, names)
    duration, duration_unit = _with_unit(_DURATIONS, names)
    ends = time is None
    if time is None:
        time, time_unit, end = end, end_unit, None
    if time is None:
        return None
    logged = duration is not None and duration.startswith(_LOGGED_AT_END)
    ends = ends or (logged and _with_unit(_STARTS, names)[0] is None)
    return RequestFields(
        names[time],
        UNITS[time_unit] if time_unit else _marked(_TIME_MARKS, names),
        ends,
        names[end] if end and not duration else None,
        names[duration] if duration else None,
        duration_unit or _marked(_DURATION_MARKS, names),
        *(_first(wanted, names) for wanted in (_TOKENS_IN, _TOKENS_OUT, _STATUSES, _MODELS, _PATHS)),
    )


def _of_own_log(names: Mapping[str, str]) -> RequestFields:
    return RequestFields(
        time=names["time"],
        time_unit=1.0,
        time_ends=False,
        end=None,
        duration=names["serviceseconds"],
        duration_unit="s",
        tokens_in=None,
        tokens_out=None,
        status=names.get("status"),
        model=names.get("pool"),
        path=names.get("path"),
        whole=names["totalseconds"],
        left_out=names.get("leftout"),
    )


def count_fields(fields: Sequence[str]) -> CountFields | None:
    """Return which of `fields` tells what of counts, or None if they are of something else."""
    names = {plain(field): field for field in fields}
    start, start_unit = _with_unit(_STARTS + _TIMES, names)
    end, _ = _with_unit(_ENDS, names)
    count = _first(_COUNTS, names)
    # Other names mean counts only beside a time, and not beside what single requests have.
    if count is None and start and len(names) == 2:
        count = _first(_COUNTS_BESIDE_A_TIME, names)
    if count is None:
        return None
    found = CountFields(
        count=count,
        start=names[start] if start else None,
        start_unit=UNITS[start_unit] if start_unit else None,
        end=names[end] if end else None,
        length=_first(("intervals", "interval"), names),
        filled=_first(("filled",), names),
        tokens_in=_first(_TOKENS_IN, names),
        tokens_out=_first(_TOKENS_OUT, names),
        model=_first(_MODELS, names),
        empty_is_zero="nummodelrequests" in names,
    )
    known = {
        found.count,
        found.start,
        found.end,
        found.length,
        found.filled,
        found.tokens_in,
        found.tokens_out,
    }
    return replace(found, labelled=not known.issuperset(names.values()))


def _first(wanted: Iterable[str], names: Mapping[str, str]) -> str | None:
    return next((names[name] for name in wanted if name in names), None)


def _with_unit(wanted: Iterable[str], names: Mapping[str, str]) -> tuple[str | None, str | None]:
    """Return the plain name of the first that is there, and the unit that follows it."""
    for name in wanted:
        if name in names:
            return name, None
        for word, unit in _UNIT_WORDS.items():
            if name + word in names:
                return name + word, unit
    return None, None


def _marked(marks: Mapping[str, Value], names: Mapping[str, str]) -> Value | None:
    """Return what the first name that is there says."""
    return next((value for name, value in marks.items() if name in names), None)
