"""Tells what a file of traffic is, and reads it.

The kind is told by its first lines, never by its name. A line that cannot be used is counted with its reason
and left out: a log of a month has a few broken lines, and they are no reason to give up. A file of which no
line can be used is an error. docs/traffic.md shows every kind.
"""

import json
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from autoscaler.errors import UsageError
from autoscaler.telemetry.prometheus_meaning import Kind
from autoscaler.telemetry.traffic import openai_usage, prometheus_answer
from autoscaler.telemetry.traffic.access_log import AccessLog
from autoscaler.telemetry.traffic.count_table import CountLines, CountsTable
from autoscaler.telemetry.traffic.demand import Traffic
from autoscaler.telemetry.traffic.envoy_log import EnvoyLog
from autoscaler.telemetry.traffic.faults import FaultCount, LineUnusable
from autoscaler.telemetry.traffic.form import Form, Told, Wanted
from autoscaler.telemetry.traffic.haproxy_log import HaproxyLog
from autoscaler.telemetry.traffic.json_lines import JsonLines, is_request
from autoscaler.telemetry.traffic.request_table import RequestTable
from autoscaler.telemetry.traffic.text_file import LOOK_AHEAD, Progress, TextFile, opened

_LINES = (HaproxyLog, EnvoyLog, AccessLog, JsonLines)
"""The first that fits is taken: some lines of HAProxy and Envoy look like an access log, too."""
_SOUGHT = (
    "an access log (common, combined, Envoy, HAProxy), JSON lines, or a CSV whose header names a time of "
    "arrival (arrival_s, timestamp, …) or counts (start_s, requests)"
)


def read_traffic(
    path: Path,
    *,
    interval: float | None = None,
    duration_unit: str | None = None,
    gaps: bool = False,
    zone: str | None = None,
    only_model: str | None = None,
    kind: Kind | None = None,
    progress: Progress | None = None,
) -> Traffic:
    """Read the traffic in `path`.

    Parameters
    ----------
    path : Path
        The file.
    interval : float, optional
        Length of an interval [s], for counts that come without times, or from samples of Prometheus.
    duration_unit : str, optional
        `s`, `ms`, `us` or `ns`, for durations that do not say; else it is told by their form.
    gaps : bool
        Whether counts that were filled in, or whose interval is absent, are not known rather than what is
        there or zero; see `count_rows`.
    zone : str, optional
        Whose clock people go by, as `Europe/Berlin`: read are by it the times that name no zone, which are
        taken as UTC else.
    only_model : str, optional
        Requests of other models are left out.
    kind : Kind, optional
        What the samples of a saved answer of Prometheus are, if that shall not be told by themselves.
    progress : callable, optional
        See `text_file.Progress`.

    Raises
    ------
    UsageError
        If the file cannot be read, is of no known kind, or has no line that can be used.
    """
    wanted = Wanted(interval, duration_unit, gaps, zone, only_model, kind)
    faults = FaultCount()
    with opened(path, progress) as file:
        full = _first_lines(file)
        if not full:
            raise UsageError(f"{path}: is empty")
        form, header = _form([line for _, line in full], wanted)
        try:
            if form is not None:
                lines, told = _by_line(file, form, full[0][0] if header else 0, faults)
                name = form.name
            elif full[0][1].lstrip()[0] in "{[":
                name, lines, told = _document(file.whole(), wanted, faults)
            else:
                raise UsageError(_unknown(file, full[0][1]))
        except UsageError as error:
            raise UsageError(f"{path}: {error}{_first_fault(faults)}") from error
    return Traffic(
        path,
        name,
        told.demand,
        lines,
        faults.faults(),
        told.notes,
        told.tokens_in,
        told.tokens_out,
        told.zone,
        told.models,
    )


def _first_lines(file: TextFile) -> list[tuple[int, str]]:
    """Return the first lines that hold something, with their numbers."""
    lines = file.head.split("\n")
    if not file.whole_in_head and len(lines) > 1:
        lines.pop()  # it may be cut
    numbered = islice(enumerate(lines, start=1), LOOK_AHEAD)
    return [(number, line.removesuffix("\r")) for number, line in numbered if _holds_something(line)]


def _holds_something(line: str) -> bool:
    return bool(line) and not line.isspace() and not line.startswith("#")


def _form(first: list[str], wanted: Wanted) -> tuple[Form | None, bool]:
    """Tell what takes lines like `first`, and whether their first is a header; None if they are no lines."""
    for line in first:
        for kind in _LINES:
            if kind.fits(line):
                return kind(wanted), False
        if CountLines.fits(line):
            return CountLines(line, wanted), False
    header = first[0]
    if header.lstrip()[0] in "{[":
        return None, False
    for table in (CountsTable, RequestTable):
        if table.fits(header):
            return table(header, wanted), True
    return (RequestTable(None, wanted), False) if RequestTable.fits_row(header) else (None, False)


def _by_line(file: TextFile, form: Form, header: int, faults: FaultCount) -> tuple[int, Told]:
    """Give all lines to `form` but that of the header; return their number, and what they told."""
    lines, take = 0, form.take
    for number, line in enumerate(file.lines(), start=1):
        if not line or line[0] == "#" or line.isspace() or number == header:
            continue
        lines += 1
        try:
            take(number, line)
        except LineUnusable as fault:
            faults.add(str(fault), number, line)
    if not lines:
        raise UsageError("has a header, and nothing below it")
    return lines, form.told(faults)


def _document(text: str, wanted: Wanted, faults: FaultCount) -> tuple[str, int, Told]:
    """Read a JSON document: return what it is, the number of its records, and what they told."""
    documents = _documents(text)
    if buckets := openai_usage.buckets_in(documents):
        return openai_usage.NAME, len(buckets), openai_usage.told_by_usage(documents, buckets, wanted, faults)
    if len(documents) == 1 and prometheus_answer.fits(documents[0]):
        told, samples = prometheus_answer.told_by_prometheus(text, wanted)
        return prometheus_answer.NAME, samples, told
    records = next((found for found in map(_records, (documents, *documents)) if found), None)
    if records is None and '"stream"' in text[:10_000] and '"log"' in text[:10_000]:
        raise UsageError(
            "is the log of a container as its runtime keeps it; unpack it: jq -rj .log FILE > a.log"
        )
    if records is None:
        raise UsageError(
            "is JSON, but neither a saved answer of Prometheus (query_range), nor usage of OpenAI (buckets "
            "with num_model_requests), nor requests with a time of arrival"
        )
    form = JsonLines(wanted)
    for number, record in enumerate(records, start=1):
        line = str(record)
        try:
            form.take_fields(number, line, record)
        except LineUnusable as fault:
            faults.add(str(fault), number, line)
    return form.name, len(records), form.told(faults)


def _documents(text: str) -> list[Any]:
    """Return the JSON values that stand one after another in `text`."""
    try:
        return [msgspec.json.decode(text)]
    except (msgspec.DecodeError, RecursionError):
        pass
    decoder, values, place = json.JSONDecoder(), [], 0
    while place < len(text):
        place += len(text[place : place + 1000]) - len(text[place : place + 1000].lstrip())
        if place >= len(text):
            break
        try:
            value, place = decoder.raw_decode(text, place)
        except (ValueError, RecursionError) as error:
            raise UsageError(f"is no JSON that can be read: {error}") from error
        values.append(value)
    return values


def _records(value: Any) -> list[Any] | None:
    """Return a list of requests, which may be all of a document or all that one of its keys holds."""
    within = value.values() if isinstance(value, dict) else [value]
    lists = (each for each in within if isinstance(each, list))
    return next((each for each in lists if any(map(is_request, each[:LOOK_AHEAD]))), None)


def _unknown(file: TextFile, first: str) -> str:
    if "\x00" in file.head:
        return f"is no text (it holds zero bytes); give {_SOUGHT}"
    return f"starts with {first.strip()[:60]!r}; give {_SOUGHT}"


def _first_fault(faults: FaultCount) -> str:
    """Say what was wrong with the lines, if that is why there is nothing."""
    told = faults.faults()
    if not told:
        return ""
    return f"; {told[0]}"
