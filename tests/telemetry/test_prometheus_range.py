"""Weeks of the past come from a Prometheus: from a real one, and what goes wrong from a scripted one."""

import asyncio
import math

import numpy as np
import pytest
from aiohttp import web

from autoscaler.errors import UsageError
from autoscaler.telemetry import prometheus_range
from autoscaler.telemetry.prometheus_meaning import Kind
from autoscaler.telemetry.prometheus_range import RangeQuery, read_range
from tests.fakes.prometheus_server import ABSENT, installed, matrix, running, scripted

DAY = 86_400
START = 1_790_000_000 // 3600 * 3600
MINUTES = 8 * DAY // 60  # more than 11,000 points


def arrivals(minute: int) -> int:
    """Requests to one pod in a minute."""
    return round(60 + 30 * math.sin(2 * math.pi * minute / 1440))


def requests_total():
    """Yield pods by the minute: b starts anew on day 2, all fall silent on day 4, c comes on day 5."""
    for pod in "abc":
        value = 1000.0 if pod == "a" else 0.0
        for minute in range(MINUTES + 1):
            if pod == "c" and minute < 5 * 1440 + 1:
                continue
            if pod == "b" and minute == 2 * 1440 + 7:
                value = 0.0
            value += arrivals(minute)
            if not 4 * 1440 <= minute < 4 * 1440 + 60:
                yield f'http_requests_total{{pod="{pod}"}}', START + 60 * minute, value


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory):
    if not installed():
        pytest.skip(ABSENT)
    folder = tmp_path_factory.mktemp("prometheus")
    with running(folder, "http_requests", "counter", requests_total()) as url:
        yield url


def asked(url: str, query: str = "http_requests_total", **changes) -> RangeQuery:
    given = {"start": START, "end": START + 8 * DAY, "interval": 300.0} | changes
    return RangeQuery(url, query, **given)


def came(interval: float = 300.0) -> np.ndarray:
    """What the pods truly counted in each interval: that of minute k ends at k."""
    per_minute = np.array(
        [arrivals(minute) * (3 if minute > 5 * 1440 else 2) for minute in range(1, MINUTES + 1)]
    )
    return per_minute.reshape(-1, round(interval / 60)).sum(axis=1)


async def test_a_counter_of_a_real_prometheus_is_counted_through_resets_gaps_and_births(prometheus):
    shares = []
    answer = await read_range(asked(prometheus), progress=shares.append)
    found, truth = answer.counts.values, came()
    assert (answer.series, answer.meaning.kind, answer.counts.start) == (3, Kind.COUNTER, START)
    assert (len(found), shares[-1], len(shares) > 5) == (len(truth), 1.0, True)
    missing = np.flatnonzero(np.isnan(found))
    # Also the interval that ends when the first sample was due that did not come.
    assert missing.tolist() == list(range(4 * 288 - 1, 4 * 288 + 12))
    found, truth = np.delete(found, missing), np.delete(truth, missing)
    assert np.abs(found - truth).max() <= 1
    assert found.sum() == pytest.approx(truth.sum(), abs=2)


@pytest.mark.parametrize(
    "query, kind",
    [("sum(rate(http_requests_total[5m]))", Kind.RATE), ("increase(http_requests_total[5m])", Kind.COUNT)],
)
async def test_rates_and_increases_of_a_real_prometheus_agree_with_the_counter(prometheus, query, kind):
    answer = await read_range(asked(prometheus, query, end=START + 2 * DAY))
    assert answer.meaning.kind is kind
    # Prometheus extrapolates from the samples inside a window to its edges.
    assert np.nansum(answer.counts.values[1:]) == pytest.approx(came()[1 : 2 * 288].sum(), rel=0.01)


async def test_what_a_real_prometheus_refuses_is_told(prometheus):
    with pytest.raises(UsageError, match=r"refuses sum\(x: .*parse error"):
        await read_range(asked(prometheus, "sum(x"))


async def test_a_name_without_samples_is_told(prometheus):
    with pytest.raises(UsageError, match=r"no_such_total.*has no sample"):
        await read_range(asked(prometheus, "no_such_total"))


# --- a scripted one


async def test_chunks_meet_without_a_seam(monkeypatch):
    monkeypatch.setattr(prometheus_range, "POINTS_MAX", 7)
    chunks = []

    async def answer(request: web.Request) -> web.Response:
        start, end, step = (float(request.query[name]) for name in ("start", "end", "step"))
        points = round((end - start) / step) + 1
        chunks.append(points)
        return matrix(({"pod": "a"}, [(start + k * step, 2 * (start + k * step)) for k in range(points)]))

    async with scripted(answer) as url:
        found = await read_range(asked(url, start=3000.0, end=6000.0))
    assert found.counts.values.tolist() == [600.0] * 10
    assert (max(chunks), sum(chunks)) == (7, 51)


async def test_only_whole_intervals_on_the_grid_are_asked_for():
    async def answer(request: web.Request) -> web.Response:
        assert (request.query["start"], request.query["end"]) == ("3300.000", "5700.000")
        return matrix(({}, [(3300.0, 1.0)]))

    async with scripted(answer) as url:
        found = await read_range(asked(url, start=3100.0, end=5990.0))
    assert (found.counts.start, len(found.counts)) == (3300.0, 8)


async def test_samples_that_are_no_number_are_no_samples():
    async def answer(request: web.Request) -> web.Response:
        values = [(3000.0, 1), (3060.0, "NaN"), (3120.0, "+Inf"), (3180.0, 4), (3240.0, 5), (3300.0, 6)]
        return matrix(({}, values), warnings=["partial answer"])

    async with scripted(answer) as url:
        found = await read_range(asked(url, start=3000.0, end=3300.0))
    assert np.isnan(found.counts.values).tolist() == [True]
    assert found.warnings == ("partial answer",)


async def refused(request: web.Request) -> web.Response:
    body = {
        "status": "error",
        "errorType": "execution",
        "error": "query processing would load too many samples",
    }
    return web.json_response(body, status=422)


async def a_page(request: web.Request) -> web.Response:
    return web.Response(text="<html>Sign in</html>", status=401, content_type="text/html")


async def histograms(request: web.Request) -> web.Response:
    result = [{"metric": {}, "histograms": [[3000, {"count": "1"}]]}]
    return web.json_response({"status": "success", "data": {"resultType": "matrix", "result": result}})


async def never(request: web.Request) -> web.Response:
    await asyncio.Event().wait()
    raise AssertionError


async def broken(request: web.Request) -> web.StreamResponse:
    request.transport.abort()
    return web.Response()


@pytest.mark.parametrize(
    "answer, said",
    [
        (refused, r"refuses x_total: query processing would load too many samples"),
        (a_page, r"answers with status 401, but not as a Prometheus does"),
        (histograms, r"ask for histogram_count"),
        (never, r"no answer within 0\.2 s\. Ask for fewer series"),
        (broken, r"no answer \(.*\)\. Is it running"),
    ],
)
async def test_what_goes_wrong_is_told_with_a_remedy(answer, said):
    async with scripted(answer) as url:
        with pytest.raises(UsageError, match=said):
            await read_range(asked(url, "x_total", start=3000.0, end=6000.0, patience=0.2))


@pytest.mark.parametrize("url", ["here", "ftp://127.0.0.1/", "http://"])
async def test_what_is_no_url_is_refused(url):
    with pytest.raises(UsageError, match="not a URL"):
        await read_range(asked(url))


async def test_nobody_there_is_told_without_the_password():
    with pytest.raises(UsageError, match=r"http://me:\*\*\*@127.0.0.1:1: no answer") as told:
        await read_range(asked("http://me:secret@127.0.0.1:1/"))
    assert "secret" not in str(told.value)


async def test_less_than_an_interval_is_refused():
    with pytest.raises(UsageError, match="shorter than one interval"):
        await read_range(asked("http://127.0.0.1:1", start=10.0, end=200.0))


async def test_an_answer_without_end_is_cut_off(monkeypatch):
    monkeypatch.setattr(prometheus_range, "BODY_MAX", 1000)

    async def answer(request: web.Request) -> web.Response:
        return web.Response(text="x" * 10_000)

    async with scripted(answer) as url:
        with pytest.raises(UsageError, match="narrow it with labels"):
            await read_range(asked(url))
