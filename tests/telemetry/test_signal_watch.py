"""From exporters to grades: real sockets, and a clock that is moved by hand."""

import numpy as np
import pytest
from aiohttp import web

from autoscaler.telemetry.scrape.source import SignalSource
from autoscaler.telemetry.signal_metrics import signal_metrics
from autoscaler.telemetry.signal_test import Diagnosis, Standing
from autoscaler.telemetry.signal_test_window import Circumstances
from autoscaler.telemetry.signal_watch import SignalOptions, SignalWatch
from tests.fakes.prometheus_server import scripted

RUNNING = SignalSource("requests_running", ("running",))
DECLARED = "# TYPE running counter\nrunning {}\n"


class Pool:
    """A pool whose load is random and whose exporter says `exported(busy slots)`."""

    def __init__(self, exported):
        self._exported = exported
        self._rng = np.random.default_rng(5)
        self.busy, self.time = 6.0, 0.0
        self.urls = []

    def now(self):
        return self.time

    def wall_time(self):
        return 1.7e9 + self.time

    async def answer(self, request):
        text = self._exported(self.busy)
        return web.Response(status=500) if text is None else web.Response(text=text)

    def circumstances(self):
        return Circumstances(self.busy, 10.0, 0.0, 5)

    async def live(self, watch, intervals):
        for _ in range(intervals):
            self.busy = float(self._rng.poisson(24)) / 4
            await watch.look()
            self.time += 10.0


async def after_five_minutes(pool, options):
    watch = SignalWatch("chat", [options], pool, pool.circumstances, lambda: pool.urls)
    await watch._scraper.start()
    try:
        await pool.live(watch, 31)
    finally:
        await watch._scraper.close()
    return watch


@pytest.mark.parametrize(
    "exported, standing, diagnosis",
    [
        (lambda busy: f"running {busy}\n", Standing.GOOD, None),
        (lambda busy: "running 7\n", Standing.QUARANTINED, Diagnosis.CONSTANT),
        (
            lambda busy: f"# TYPE running counter\nrunning {busy}\n",
            Standing.QUARANTINED,
            Diagnosis.COUNTER_AS_GAUGE,
        ),
        (lambda busy: None, Standing.QUARANTINED, Diagnosis.STALE),
        (lambda busy: "nothing of the kind 1\n", Standing.QUARANTINED, Diagnosis.STALE),
    ],
)
async def test_five_minutes_of_an_exporter_give_its_grade(exported, standing, diagnosis):
    pool = Pool(exported)
    async with scripted(pool.answer) as url:
        watch = await after_five_minutes(pool, SignalOptions("engine", (RUNNING,), (f"{url}/metrics",)))
    (signal,) = watch.signals
    assert signal.name == "engine.requests_running"
    assert (signal.grade.standing, signal.grade.diagnosis) == (standing, diagnosis)


async def test_without_addresses_each_ready_replica_is_asked_itself():
    pool = Pool(lambda busy: f"running {busy / 2}\n")
    async with scripted(pool.answer) as first, scripted(pool.answer) as second:
        pool.urls = [first, second]
        watch = await after_five_minutes(pool, SignalOptions("engine", (RUNNING,)))
    (signal,) = watch.signals
    assert signal.reading.value == pool.busy
    assert signal.grade.standing is Standing.GOOD


async def test_an_exporter_that_cannot_be_read_is_told_with_the_reason():
    pool = Pool(lambda busy: None)
    async with scripted(pool.answer) as url:
        watch = await after_five_minutes(pool, SignalOptions("engine", (RUNNING,), (f"{url}/metrics",)))
    assert list(watch.troubles) == ["signals engine"]
    assert "0 of 1 exporters heard" in watch.troubles["signals engine"]


async def test_without_a_replica_nothing_is_stale():
    pool = Pool(lambda busy: None)
    watch = await after_five_minutes(pool, SignalOptions("engine", (RUNNING,)))
    assert watch.troubles == {}
    assert watch.signals[0].grade.standing is Standing.LEARNING


async def test_the_metrics_tell_the_value_and_what_is_held_of_it():
    pool = Pool(lambda busy: "running 7\n")
    async with scripted(pool.answer) as url:
        watch = await after_five_minutes(pool, SignalOptions("engine", (RUNNING,), (f"{url}/metrics",)))
    told = {
        (sample.name, *sample.labels.values()): sample.value
        for family in signal_metrics({"chat": watch.signals})
        for sample in family.samples
    }
    name = ("chat", "engine.requests_running")
    assert told["autoscaler_signal_value", *name] == 7.0
    assert told["autoscaler_signal_usable", *name] == 0.0
    assert told["autoscaler_signal_quarantined", *name, "constant"] == 1.0
    assert told["autoscaler_signal_quarantined", *name, "stale"] == 0.0
