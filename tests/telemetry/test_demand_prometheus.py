"""Demand through a Prometheus: a scripted one for what can go wrong, and a real one for the queries."""

import asyncio
import re
import time

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from autoscaler.clock import VirtualClock
from autoscaler.telemetry.demand.options import PrometheusDemand
from autoscaler.telemetry.demand.prometheus import PrometheusReader, queries
from load.free_port import free_port
from tests.fakes.prometheus_server import ABSENT, installed, scraping

KNOWN = {
    "arrivals_total": 2.05,
    "service_time_seconds_count": 2.0,
    "service_time_seconds_sum": 5.0,
    "service_time_squares_total": 20.0,
    "busy_slot_seconds_total": 5.2,
    "sum(autoscaler_queue_depth": 3,
    "oldest_wait": 1.5,
    "rejected": 0.1,
    "missing": 0,
    "count(autoscaler_queue_depth": 4,
}


class Scripted:
    """A Prometheus that knows rates and levels by a piece of the query."""

    def __init__(self, known):
        self.known, self.status = dict(known), "success"
        self.asked, self.moments = [], set()
        self.times = list(range(942, 1000, 5))
        """Of the samples in the window."""

    async def answer(self, request: web.Request) -> web.Response:
        return await self.reply(request)

    async def reply(self, request: web.Request) -> web.Response:
        form = await request.post()
        query = form["query"]
        self.asked.append(query)
        self.moments.add(form.get("time"))
        if self.status != "success":
            return web.json_response({"status": "error", "error": self.status}, status=400)
        if query.startswith("vector"):
            return web.json_response({"status": "success", "data": {"result": [{"value": [1000, "1000"]}]}})
        if query.startswith("autoscaler_queue_depth"):
            series = [{"values": [[at, "3"] for at in self.times]}] if self.known else []
            return web.json_response({"status": "success", "data": {"result": series}})
        if "last_over_time" in query:
            found = self.known.get("missing")
        else:
            found = next((value for piece, value in self.known.items() if piece in query), None)
        result = [] if found is None else [{"metric": {}, "value": [0, str(found)]}]
        return web.json_response({"status": "success", "data": {"resultType": "vector", "result": result}})


@pytest.fixture
async def prometheus():
    """Return a scripted Prometheus and a reader of it."""
    scripted = Scripted(KNOWN)
    application = web.Application()
    application.router.add_post("/api/v1/query", scripted.answer)
    async with TestServer(application, host="127.0.0.1") as server:
        clock = VirtualClock(wall_time=1e6)
        options = PrometheusDemand(f"http://127.0.0.1:{server.port}/", timeout=1.0)
        scripted.clock = clock
        scripted.reader = PrometheusReader("chat", options, 30.0, clock)
        yield scripted


async def after(prometheus, seconds):
    """Read, let time pass, and close the interval."""
    async with prometheus.reader.session() as session:
        await prometheus.reader.read(session)
    prometheus.clock.move_to(prometheus.clock.now() + seconds)
    return prometheus.reader.close(prometheus.clock.now(), 1e6)


async def test_rates_become_counts_of_the_interval(prometheus):
    seen = await after(prometheus, 10.0)
    assert (seen.interval, seen.arrivals, seen.completions, seen.rejected) == (10.0, 20, 20, 1)
    assert (seen.service_time_sum, seen.service_time_square_sum) == (50.0, 200.0)
    assert (seen.busy_slots_mean, seen.queue_depth, seen.in_flight, seen.oldest_wait) == (5.2, 3, 8, 1.5)
    assert not seen.is_partial


async def test_all_is_asked_of_one_moment_of_its_clock(prometheus):
    await after(prometheus, 10.0)
    assert prometheus.moments == {None, "1000.000"}  # None for what tells the time, and who is there


async def test_what_is_left_of_a_request_is_owed_to_the_next_interval(prometheus):
    assert [(await after(prometheus, 10.0)).arrivals for _ in range(4)] == [20, 21, 20, 21]


async def test_doors_that_are_not_there_any_more_make_it_partial(prometheus):
    prometheus.known["missing"] = 1
    assert (await after(prometheus, 10.0)).is_partial


async def test_after_prometheus_was_away_rates_are_over_the_time_since(prometheus):
    prometheus.times = [942, 947, 982, 987, 992, 997]
    assert (await after(prometheus, 10.0)).arrivals == 20
    assert 'sum(rate(autoscaler_arrivals_total{pool="chat"}[18s]))' in prometheus.asked


@pytest.mark.parametrize("times", [[998], [987, 992, 997], [942, 947, 952]])
async def test_of_too_few_scrapes_and_of_old_ones_nothing_is_known(prometheus, times):
    prometheus.times = times
    assert await after(prometheus, 10.0) is None
    assert "has not scraped pool 'chat' for long enough" in prometheus.reader.trouble


async def test_what_was_read_last_goes_on_for_a_while_and_then_nothing_is_known(prometheus):
    await after(prometheus, 10.0)
    prometheus.status = "too many samples"
    assert (await after(prometheus, 10.0)).arrivals > 0
    assert prometheus.reader.trouble.endswith("too many samples")
    assert await after(prometheus, 10.0) is None


async def test_a_prometheus_that_does_not_know_the_pool_says_nothing_of_its_demand(prometheus):
    prometheus.known.clear()
    assert await after(prometheus, 10.0) is None
    assert "no metrics of pool 'chat'" in prometheus.reader.trouble


@pytest.mark.parametrize("value", ["+Inf", "NaN", "-3", "1e300", "many"])
@pytest.mark.parametrize("piece", ["arrivals_total", "busy_slot_seconds_total", "missing"])
async def test_a_value_that_cannot_be_is_not_taken_for_one(prometheus, piece, value):
    prometheus.known[piece] = 7
    before = await after(prometheus, 10.0)
    prometheus.known[piece] = value
    assert (await after(prometheus, 10.0)).busy_slots_mean == before.busy_slots_mean
    assert prometheus.reader.trouble
    assert await after(prometheus, 10.0) is None


async def test_an_answer_that_is_nested_without_end_is_none(prometheus, monkeypatch):
    async def nested(request):
        return web.Response(body=b'{"x": ' + b"[" * 100_000)

    await after(prometheus, 10.0)
    monkeypatch.setattr(prometheus, "reply", nested)
    assert (await after(prometheus, 10.0)).arrivals > 0
    assert "not as a Prometheus does" in prometheus.reader.trouble


def test_names_are_quoted_and_labels_added():
    asked = queries('a"b', PrometheusDemand("http://p", 30.0, 'job="x"'), 30.0)
    assert asked["arrivals"] == 'sum(rate(autoscaler_arrivals_total{pool="a\\"b",job="x"}[30s]))'
    assert 'up{job="x"} == 0' in asked["missing"]


@pytest.mark.parametrize(
    "given", [{"selector": "{x}"}, {"window": 0.0}, {"interval": 0.0}, {"timeout": -1.0}]
)
def test_options_that_cannot_be_are_refused(given):
    with pytest.raises(ValueError, match=re.escape(next(iter(given)))):
        PrometheusDemand("http://p", **given)


class Exporter:
    """Two doors on one page: ten arrivals a second each, half a second in a slot."""

    def __init__(self):
        self.began, self.doors = time.monotonic(), ("a", "b")

    async def page(self, request: web.Request) -> web.Response:
        served = int(10 * (time.monotonic() - self.began))
        lines = []
        for door in self.doors:
            labels = f'{{pool="chat",door="{door}"}}'
            lines += [
                f"autoscaler_arrivals_total{labels} {served}",
                f"autoscaler_service_time_seconds_count{labels} {served}",
                f"autoscaler_service_time_seconds_sum{labels} {served * 0.5}",
                f"autoscaler_service_time_squares_total{labels} {served * 0.25}",
                f"autoscaler_busy_slot_seconds_total{labels} {served * 0.5}",
                f"autoscaler_queue_depth{labels} 1",
                f"autoscaler_oldest_wait_seconds{labels} 0.5",
            ]
        return web.Response(text="\n".join(lines) + "\n")


@pytest.mark.skipif(not installed(), reason=ABSENT)
async def test_a_real_prometheus_answers_every_query_and_a_door_that_vanishes_is_missed(tmp_path):
    exporter, rules = Exporter(), tmp_path / "rules.yml"
    rules.write_text("groups: []\n")
    application = web.Application()
    application.router.add_get("/metrics", exporter.page)
    async with TestServer(application, host="127.0.0.1") as server:
        serving = scraping(tmp_path, [f"127.0.0.1:{server.port}"], rules, "200ms")
        url = await asyncio.to_thread(serving.__enter__)
        try:
            options = PrometheusDemand(url, window=2.0, selector='job="inference-autoscaler"')
            clock = VirtualClock(wall_time=1e6)
            reader = PrometheusReader("chat", options, 30.0, clock)
            async with reader.session() as session:
                await until_read(reader, session, lambda rates: rates.arrivals > 18 and not rates.missing)
                rates = reader._rates
                assert (rates.doors, rates.queue_depth, rates.oldest_wait) == (2, 2, 0.5)
                assert rates.service_time / rates.completions == pytest.approx(0.5)
                assert rates.busy == pytest.approx(10.0, rel=0.3)
                exporter.doors = ("a",)
                await until_read(reader, session, lambda rates: rates.missing == 1)
        finally:
            await asyncio.to_thread(serving.__exit__, None, None, None)


@pytest.mark.skipif(not installed(), reason=ABSENT)
async def test_a_door_that_is_down_is_missed_however_rarely_prometheus_scrapes(tmp_path):
    exporter, rules = Exporter(), tmp_path / "rules.yml"
    rules.write_text("groups: []\n")
    application = web.Application()
    application.router.add_get("/metrics", exporter.page)
    async with TestServer(application, host="127.0.0.1") as server:
        targets = [f"127.0.0.1:{server.port}", f"127.0.0.1:{free_port()}"]
        serving = scraping(tmp_path, targets, rules, "1s")
        url = await asyncio.to_thread(serving.__enter__)
        try:
            options = PrometheusDemand(url, window=4.0, selector='job="inference-autoscaler"')
            reader = PrometheusReader("chat", options, 0.3, VirtualClock(wall_time=1e6))
            async with reader.session() as session:
                await until_read(reader, session, lambda rates: rates.missing == 1)
                for _ in range(8):  # at any time between two scrapes
                    await asyncio.sleep(0.15)
                    await reader.read(session)
                    assert (reader._rates.missing, reader._rates.doors) == (1, 2)
        finally:
            await asyncio.to_thread(serving.__exit__, None, None, None)


async def until_read(reader, session, condition, timeout=20.0):
    async with asyncio.timeout(timeout):
        while True:
            await reader.read(session)
            if reader._rates is not None and condition(reader._rates):
                return
            await asyncio.sleep(0.2)


@pytest.mark.skipif(not installed(), reason=ABSENT)
async def test_a_prometheus_that_has_just_come_back_makes_the_demand_no_smaller(tmp_path):
    """Its window is hardly filled, so what it calls a rate is a fraction of one."""
    exporter, rules = Exporter(), tmp_path / "rules.yml"
    rules.write_text("groups: []\n")
    application = web.Application()
    application.router.add_get("/metrics", exporter.page)
    async with TestServer(application, host="127.0.0.1") as server:
        serving = scraping(tmp_path, [f"127.0.0.1:{server.port}"], rules, "500ms")
        url = await asyncio.to_thread(serving.__enter__)
        try:
            options = PrometheusDemand(url, window=60.0, selector='job="inference-autoscaler"')
            reader = PrometheusReader("chat", options, 30.0, VirtualClock(wall_time=1e6))
            async with reader.session() as session:
                await until_read(reader, session, lambda rates: not rates.missing)
                assert reader._rates.arrivals == pytest.approx(20.0, rel=0.35)
                assert reader._rates.busy == pytest.approx(10.0, rel=0.35)
        finally:
            await asyncio.to_thread(serving.__exit__, None, None, None)
