"""Real sockets: exporters that answer, and those that are slow, broken, endless or gone."""

import asyncio
import gzip
import socket
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from autoscaler.telemetry.scrape.scraper import EXPORTERS_MAX, Exporter, ScrapeOptions, Scraper
from autoscaler.telemetry.scrape.source import SignalSource
from tests.fakes.prometheus_server import scripted

SOURCE = SignalSource("depth", ("queue_depth",))
GOOD = "# TYPE queue_depth gauge\nqueue_depth 7\n"
OPTIONS = ScrapeOptions(timeout=1.0, bytes_max=100_000)


class Time:
    def now(self):
        return 50.0

    def wall_time(self):
        return 1.7e9


@asynccontextmanager
async def a_scraper(options=OPTIONS):
    scraper = Scraper(Time(), options)
    await scraper.start()
    try:
        yield scraper
    finally:
        await scraper.close()


async def scraped(answer, options=OPTIONS):
    async with scripted(answer) as url, a_scraper(options) as scraper:
        exporter = Exporter(f"{url}/metrics", [SOURCE])
        await scraper.scrape([exporter])
        return exporter.readings["depth"]


def says(text, **more):
    async def answer(request):
        return web.Response(text=text, **more)

    return answer


async def test_an_exporter_that_answers_is_read():
    reading = await scraped(says(GOOD))
    assert (reading.value, reading.read_at, reading.fault, reading.declared) == (7.0, 50.0, "", "gauge")


async def test_a_long_answer_is_read_too():
    rest = "\n".join(f'other{{n="{number}"}} 1' for number in range(5000))
    assert (await scraped(says(GOOD + rest))).value == 7.0


async def hangs(request):
    await asyncio.sleep(30)


async def drips(request):
    response = web.StreamResponse()
    await response.prepare(request)
    while True:
        await response.write(b"#\n")
        await asyncio.sleep(0.05)


async def is_cut(request):
    response = web.StreamResponse(headers={"Content-Length": "1000"})
    await response.prepare(request)
    await response.write(GOOD.encode())
    request.transport.abort()
    return response


async def is_compressed(request):
    return web.Response(body=gzip.compress(GOOD.encode()), headers={"Content-Encoding": "gzip"})


async def goes_round(request):
    raise web.HTTPFound("/metrics")


@pytest.mark.parametrize(
    "answer, fault",
    [
        (hangs, "no answer within 1s"),
        (drips, "no answer within 1s"),
        (is_cut, "cannot be asked: "),
        (is_compressed, "answers compressed although it was asked not to"),
        (goes_round, "cannot be asked: "),
        (says("no", status=404), "answers 404; is this the address of its metrics?"),
        (says(GOOD + "#" * 200_000), "answers more than 100000B"),
        (says("queue_depth {{{"), "its answer is not in Prometheus' format: "),
        (says("<html>hello</html>"), "has no metric queue_depth"),
        (
            says(GOOD, content_type="application/openmetrics-text"),
            "its answer is not in Prometheus' format: ",
        ),
    ],
)
async def test_whatever_is_wrong_with_it_becomes_a_fault(answer, fault):
    reading = await scraped(answer)
    assert reading.fault.startswith(fault)


async def test_nobody_there_is_a_fault():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        async with a_scraper() as scraper:
            exporter = Exporter(f"http://127.0.0.1:{taken.getsockname()[1]}/metrics", [SOURCE])
            await scraper.scrape([exporter])
    assert exporter.readings["depth"].fault.startswith("cannot be asked: ")


async def test_slow_exporters_cost_the_others_nothing():
    async def answer(request):
        return await hangs(request) if "slow" in request.path else web.Response(text=GOOD)

    async with scripted(answer) as url, a_scraper() as scraper:
        slow = [Exporter(f"{url}/slow/{number}", [SOURCE]) for number in range(100)]
        good = [Exporter(f"{url}/good/{number}", [SOURCE]) for number in range(20)]
        began = asyncio.get_running_loop().time()
        await scraper.scrape([*slow, *good])
        took = asyncio.get_running_loop().time() - began
    assert {exporter.readings["depth"].value for exporter in good} == {7.0}
    assert {exporter.readings["depth"].fault for exporter in slow} == {"no answer within 1s"}
    assert took < 10 * OPTIONS.timeout  # all at once; one after the other would take a hundred times as long


async def test_a_redirect_to_the_same_place_with_a_slash_is_followed():
    async def answer(request):
        if not request.path.endswith("/"):
            raise web.HTTPTemporaryRedirect(f"{request.path}/")
        return web.Response(text=GOOD)

    assert (await scraped(answer)).value == 7.0


async def test_too_many_exporters_are_refused():
    async with a_scraper() as scraper:
        with pytest.raises(ValueError, match="at most 256"):
            await scraper.scrape([Exporter("http://127.0.0.1:1/", [SOURCE])] * (EXPORTERS_MAX + 1))
