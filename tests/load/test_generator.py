"""The generator against real servers on the loopback: what it measures, and when it ends."""

import asyncio
import time
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from load.generator import Generator, Outgoing, Record, server_timing
from load.summary import Spread, summarize


@asynccontextmanager
async def a_server(handler):
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(app, shutdown_timeout=0, handler_cancellation=True)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/"
    finally:
        await runner.cleanup()


def sends(url, **options):
    return Generator(lambda index: Outgoing(url, body=b"x"), **options)


async def test_a_stalled_server_shows_in_every_latency_that_it_spoilt():
    """The stall lasts from 0.1 to 0.6 s: a closed loop would see one slow request, but all due in it are."""
    began = time.monotonic()

    async def stalls(request):
        now = time.monotonic() - began
        if 0.1 <= now < 0.6:
            await asyncio.sleep(0.6 - now)
        return web.Response()

    async with a_server(stalls) as url:
        began = time.monotonic()
        records = await sends(url).run([0.02 * k for k in range(40)])
    slow = [record for record in records if record.latency > 0.1]
    assert len(records) == 40
    assert len(slow) == pytest.approx(20, abs=4)  # due from 0.1 to 0.5 s, 0.02 s apart
    assert max(record.latency for record in slow) == pytest.approx(0.5, abs=0.1)


async def test_latency_counts_from_the_intended_time_even_if_the_generator_was_late():
    async def answers(request):
        return web.Response()

    async with a_server(answers) as url:
        generator = sends(url)
        run = asyncio.create_task(generator.run([0.0, 0.05]))
        await asyncio.sleep(0.02)
        time.sleep(0.2)  # the whole process hangs over the second intended time
        _, second = await run
    assert second.sent - second.intended > 0.1
    assert second.latency > 0.1


async def test_what_the_server_says_of_queue_and_service_is_kept():
    async def tells(request):
        return web.Response(body=b"12345", headers={"Server-Timing": "queue;dur=12.5, service;dur=500"})

    async with a_server(tells) as url:
        (record,) = await sends(url).run([0.0])
    assert (record.status, record.bytes_received, record.failed) == (200, 5, False)
    assert (record.queue_time, record.service_time) == (0.0125, 0.5)
    assert record.intended <= record.sent <= record.first_byte <= record.end


@pytest.mark.parametrize(
    "headers, durations",
    [
        ([], {}),
        (["queue;dur=1.5"], {"queue": 0.0015}),
        (["queue;dur=1, service;dur=2", "total;dur=3"], {"queue": 0.001, "service": 0.002, "total": 0.003}),
        (['cache;desc="hit";dur=4', "miss"], {"cache": 0.004}),
        (["queue; dur=1e9x", "=;,"], {}),
    ],
)
def test_server_timing_is_read_as_far_as_it_can_be(headers, durations):
    assert server_timing(headers) == durations


async def test_refusals_time_outs_and_bad_answers_are_failures_of_different_kinds():
    async def fails(request):
        if request.path == "/slow":
            await asyncio.sleep(5)
        return web.Response(status=503)

    async with a_server(fails) as url:
        paths = ["", "slow", "?again"]
        generator = Generator(lambda index: Outgoing(url + paths[index]), timeout=0.3)
        records = await generator.run([0.0, 0.0, 0.0])
    (refused,) = await sends("http://127.0.0.1:1/").run([0.0])
    assert [(record.status, record.error) for record in [*records, refused]] == [
        (503, None),
        (None, "timeout"),
        (503, None),
        (None, "connection refused"),
    ]
    assert all(record.failed for record in [*records, refused])


async def test_a_request_that_cannot_even_be_sent_is_a_failure():
    generator = Generator(lambda index: Outgoing("http://127.0.0.1:1/", method="G T"))
    (record,) = await generator.run([0.0])
    assert (record.error, record.failed) == ("value", True)


async def test_a_truncated_answer_is_a_failure():
    async def breaks_off(request):
        answer = web.StreamResponse(headers={"Content-Length": "100"})
        await answer.prepare(request)
        await answer.write(b"half")
        request.transport.close()
        return answer

    async with a_server(breaks_off) as url:
        (record,) = await sends(url).run([0.0])
    assert (record.status, record.bytes_received, record.failed) == (200, 4, True)


async def test_stopping_cuts_off_what_runs_and_keeps_what_is_known():
    async def hangs(request):
        if request.query_string != "quick":
            await asyncio.sleep(60)
        return web.Response()

    async with a_server(hangs) as url:
        generator = Generator(lambda index: Outgoing(url + ("?quick" if index == 0 else "")))
        asyncio.get_running_loop().call_later(0.3, generator.stop)
        began = time.monotonic()
        records = await generator.run([0.0, 0.1, 30.0])
    assert time.monotonic() - began < 5.0
    assert [record.finished for record in records] == [True, False]
    assert not generator.in_flight


def a_record(intended=0.0, latency=1.0, **known):
    return Record(intended, intended, end=None if latency is None else intended + latency, **known)


def test_percentiles_are_values_that_were_seen():
    spread = Spread.of([*range(1, 100), None, 100])
    assert (spread.p50, spread.p95, spread.p99, spread.max, spread.mean) == (50, 95, 99, 100, 50.5)
    assert Spread.of([None]).p99 is None


def test_a_summary_tells_good_bad_and_unfinished_apart():
    summary = summarize(
        [
            a_record(0.0, 1.0, status=200, queue_time=0.25, service_time=0.5),
            a_record(1.0, 3.0, status=503),
            a_record(2.0, 6.0, error="timeout"),
            a_record(3.0, 0.001, error="connection refused"),
            a_record(4.0, None),
        ]
    )
    assert (summary.requests, summary.failures, summary.unfinished, summary.seconds) == (5, 3, 1, 8.0)
    assert (summary.statuses, summary.errors) == (
        {"200": 1, "503": 1},
        {"timeout": 1, "connection refused": 1},
    )
    assert (summary.latency.max, summary.latency.p50) == (
        6.0,
        3.0,
    )  # the refusal is no latency, the time-out is
    assert (summary.wait.max, summary.service.max) == (0.25, 0.5)
    assert summary.completed_per_second == pytest.approx(1 / 8)


def test_a_run_without_requests_has_a_summary():
    assert summarize([]).latency.p50 is None


@pytest.mark.parametrize("tries_max, failed, tries", [(1, True, 1), (2, True, 2), (3, False, 3)])
async def test_what_breaks_off_without_an_answer_is_sent_anew_as_often_as_is_allowed(
    tries_max, failed, tries
):
    asked = []

    async def breaks_twice(request):
        asked.append(request.path)
        if len(asked) <= 2:
            request.transport.abort()
        return web.Response()

    async with a_server(breaks_twice) as url:
        generator = Generator(lambda index: Outgoing(f"{url}{len(asked)}", body=b"x"), tries_max=tries_max)
        (record,) = await generator.run([0.0])
    assert (record.failed, record.tries) == (failed, tries)
    assert asked == [f"/{number}" for number in range(tries)]


async def test_what_was_answered_badly_is_not_sent_anew():
    async def refuses(request):
        return web.Response(status=503)

    async with a_server(refuses) as url:
        (record,) = await sends(url, tries_max=5).run([0.0])
    assert (record.failed, record.status, record.tries) == (True, 503, 1)
