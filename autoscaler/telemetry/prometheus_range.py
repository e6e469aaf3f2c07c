"""Asks a Prometheus for a stretch of the past (`query_range`), and counts the requests in each interval.

It is asked in chunks, for it gives 11,000 points a series at most, and one after another, to be kind to it.
Points lie closer than the intervals that are wanted, so that what a process counted just after its start and
just before its end is lost as little as possible.
"""

from array import array
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, floor, isfinite

import aiohttp
import msgspec
import numpy as np
from yarl import URL

from autoscaler.errors import UsageError
from autoscaler.no_answer import why_no_answer
from autoscaler.telemetry.prometheus_counts import counts
from autoscaler.telemetry.prometheus_meaning import Kind, Meaning, Samples, meaning
from forecasting.series import Series

POINTS_MAX = 2_000
"""Points a series in one request: far below the 11,000 allowed, so that each is answered soon."""
POINTS_PER_INTERVAL = 5
STEP_MIN = 15.0
"""Points are no closer than a usual scrape [s], unless the intervals are."""
BODY_MAX = 256 * 1024 * 1024
"""An answer larger than this [bytes] is of far more series than there are processes."""

Progress = Callable[[float], None]
"""Called after each chunk with the share that is there, in [0, 1]."""


@dataclass(frozen=True, slots=True)
class RangeQuery:
    """What is asked of which Prometheus.

    Attributes
    ----------
    url : str
        Its address, with a path in front of `/api/v1` if it has one; with user and password if it wants them.
    query : str
        In PromQL: a counter, a rate, or `increase(…)`.
    start, end : float
        Calendar times [s since the epoch]; only whole intervals between them are counted.
    interval : float
        Length of an interval [s]; they begin at multiples of it.
    kind : Kind or None
        What the samples are, if it shall not be told by themselves.
    patience : float
        A request without an answer within it fails [s].
    """

    url: str
    query: str
    start: float
    end: float
    interval: float
    kind: Kind | None = None
    patience: float = 60.0


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """What came back.

    Attributes
    ----------
    counts : Series
        Requests per interval; not-a-number where nobody counted.
    series : int
        How many were added up.
    meaning : Meaning
        What their samples were taken for.
    warnings : tuple of str
        What the server had to say about the answer.
    """

    counts: Series
    series: int
    meaning: Meaning
    warnings: tuple[str, ...]


class _Line(msgspec.Struct):
    metric: dict[str, str]
    values: list[tuple[float, str]] = []
    histograms: list[msgspec.Raw] = []


class _Data(msgspec.Struct):
    result: list[_Line] = []


class _Body(msgspec.Struct):
    status: str = ""
    data: _Data | None = None
    error: str = ""
    warnings: list[str] = []


async def read_range(asked: RangeQuery, progress: Progress | None = None) -> Answer:
    """Return the requests per interval between `asked.start` and `asked.end`.

    Raises
    ------
    UsageError
        If nobody answers, the server refuses, or there is nothing to count; it says which and what to do.
    """
    first, last = ceil(asked.start / asked.interval - 1e-9), floor(asked.end / asked.interval + 1e-9)
    if last <= first:
        raise UsageError(f"--since: shorter than one interval of {asked.interval:g} s; ask for more")
    per_interval = max(1, min(POINTS_PER_INTERVAL, floor(asked.interval / STEP_MIN)))
    step, points = asked.interval / per_interval, (last - first) * per_interval + 1
    gathered = _Gathered(first * asked.interval, step, points)
    endpoint, patience = _endpoint(asked.url), aiohttp.ClientTimeout(total=asked.patience)
    async with aiohttp.ClientSession(timeout=patience) as session:
        for begin in range(0, points, POINTS_MAX):
            end = min(begin + POINTS_MAX, points)
            gathered.add(await _ask(session, endpoint, asked.query, gathered.times(begin, end - 1)))
            if progress:
                progress(end / points)
    series = gathered.series()
    if not series:
        raise UsageError(
            f"--query {asked.query}: {_shown(endpoint)} has no sample of it in this time. Check its name and "
            f"labels there, or ask for a longer time with --since"
        )
    what = meaning(asked.query, asked.interval, series, asked.kind)
    values = counts(series, points, step, per_interval, what)
    return Answer(
        Series(values, asked.interval, first * asked.interval), len(series), what, tuple(gathered.warnings)
    )


class _Gathered:
    """Samples of all chunks, by series."""

    def __init__(self, start: float, step: float, points: int) -> None:
        self._start, self._step, self._points = start, step, points
        self._samples: dict[frozenset[tuple[str, str]], tuple[array[int], array[float]]] = {}
        self.warnings: list[str] = []

    def times(self, begin: int, last: int) -> dict[str, str]:
        """Return from when to when to ask for the points `begin` to `last`, as the server wants it."""
        start, end = (self._start + place * self._step for place in (begin, last))
        return {"start": f"{start:.3f}", "end": f"{end:.3f}", "step": f"{self._step:.3f}"}

    def add(self, body: "_Body") -> None:
        """Take in one chunk."""
        self.warnings += [warning for warning in body.warnings if warning not in self.warnings]
        for line in body.data.result if body.data else ():
            if line.histograms:
                raise UsageError("--query: gives histograms; ask for histogram_count(…) of it")
            places, values = self._samples.setdefault(
                frozenset(line.metric.items()), (array("q"), array("d"))
            )
            for time, text in line.values:
                place, value = round((time - self._start) / self._step), float(text)
                if isfinite(value) and 0 <= place < self._points:
                    places.append(place)
                    values.append(value)

    def series(self) -> list[Samples]:
        """Return every series that has a sample."""
        gathered = []
        for places, values in self._samples.values():
            if places:
                ascending, of = np.unique(np.array(places), return_index=True)
                gathered.append(Samples(ascending, np.array(values)[of]))
        return gathered


async def _ask(session: aiohttp.ClientSession, endpoint: URL, query: str, times: dict[str, str]) -> _Body:
    """Ask for one chunk."""
    shown = _shown(endpoint)
    try:
        async with session.get(endpoint, params={"query": query, **times}) as response:
            status, text = response.status, await _whole(response, query)
    except TimeoutError as error:
        raise UsageError(
            f"--prometheus {shown}: no answer within {session.timeout.total:g} s. Ask for fewer series, or "
            "for a longer --step"
        ) from error
    except (aiohttp.ClientError, OSError) as error:
        raise UsageError(
            f"--prometheus {shown}: no answer ({why_no_answer(error)}). Is it running, and reachable from "
            "here?"
        ) from error
    try:
        body = msgspec.json.decode(text, type=_Body)
    except msgspec.DecodeError as error:
        raise UsageError(
            f"--prometheus {shown}: answers with status {status}, but not as a Prometheus does. Give its "
            "address as http://127.0.0.1:9090, with the path in front of /api/v1 if there is one"
        ) from error
    if body.status != "success":
        raise UsageError(f"--prometheus {shown}: refuses {query}: {body.error or f'status {status}'}")
    return body


async def _whole(response: aiohttp.ClientResponse, query: str) -> bytes:
    """Read a body of a size that can be."""
    whole = bytearray()
    async for part in response.content.iter_any():
        whole += part
        if len(whole) > BODY_MAX:
            raise UsageError(
                f"--query {query}: the answer is larger than {BODY_MAX // 2**20} MiB; narrow it with labels, "
                "or ask for sum(rate(…[5m]))"
            )
    return bytes(whole)


def _endpoint(url: str) -> URL:
    try:
        base = URL(url.rstrip("/"))
    except ValueError:
        base = URL()
    if base.scheme not in ("http", "https") or not base.host:
        raise UsageError(f"--prometheus {url}: not a URL; write it as http://127.0.0.1:9090")
    return base / "api/v1/query_range"


def _shown(endpoint: URL) -> str:
    """Return the address that was given, without its password."""
    base = endpoint.parent.parent.parent
    return str(base.with_password("***") if base.password else base).rstrip("/")
