"""A server that lastingly holds more or fewer requests than was sent to it is found out; noise is not."""

import numpy as np
import pytest
from aiohttp import web

from autoscaler.telemetry.ledger_check import LASTING, LedgerCheck, LedgerDiagnosis
from autoscaler.telemetry.ledger_watch import LedgerWatch, ledger_metrics
from autoscaler.telemetry.scrape.presets import PRESETS
from autoscaler.telemetry.signal_watch import SignalOptions, SignalWatch
from tests.fakes.prometheus_server import scripted

FOREIGN, MISSING = LedgerDiagnosis.FOREIGN_LOAD, LedgerDiagnosis.CALLS_MISSING


def after(*samples: tuple[float, int], interval: float = 10.0):
    """Return what is found after looks at (requests held, slots in use)."""
    check = LedgerCheck("http://a")
    for number, (held, leases) in enumerate(samples):
        check.take(held, (leases, leases), now=number * interval)
    return check.finding


def test_somebody_elses_requests_are_found_within_the_time_and_counted():
    assert after(*[(3, 1)] * 17) is None
    found = after(*[(3, 1), (6, 3)] * 10)
    assert (found.diagnosis, found.requests, found.replica) == (FOREIGN, 2, "http://a")
    assert found.text.startswith("holds 2 or more requests that did not come through here")


def test_calls_that_the_server_does_not_know_are_found():
    found = after(*[(0, 2)] * 20)
    assert (found.diagnosis, found.requests) == (MISSING, 2)


def test_one_look_at_which_they_agree_ends_it():
    assert after(*[(3, 1)] * 25, (1, 1)) is None


def test_calls_on_their_way_are_no_difference():
    # 100 requests a second of 2 s each, and 50 ms on the wire of each: 5 of 205 are never seen there.
    rng = np.random.default_rng(3)
    assert after(*[(200 + rng.poisson(5) - 5, 205) for _ in range(200)]) is None


def test_looks_that_are_not_at_the_same_moment_are_no_difference():
    rng = np.random.default_rng(4)
    assert after(*[tuple(rng.poisson(6, size=2)) for _ in range(300)]) is None


def test_what_changed_while_the_server_was_asked_counts_for_it():
    check = LedgerCheck("http://a")
    for number in range(20):
        assert check.take(2.0, (0, 2), now=number * 10.0) is None


def test_after_a_silence_it_begins_anew():
    check = LedgerCheck("http://a")
    for number in range(15):
        check.take(3.0, (1, 1), now=number * 10.0)
    assert check.take(3.0, (1, 1), now=1000.0) is None


def test_few_looks_prove_nothing():
    assert after((3, 1), (3, 1), (3, 1), (3, 1), interval=55.0) is None


class Servers:
    """Two replicas that say what they hold, a ledger, and a clock that is moved by hand."""

    def __init__(self):
        self.time = 0.0
        self.held: dict[str, str] = {}
        self.leases: dict[str, int] = {}

    def now(self):
        return self.time

    def wall_time(self):
        return 1.7e9 + self.time

    async def live(self, watch, seconds):
        for _ in range(int(seconds / 10)):
            await watch.look()
            self.time += 10.0


@pytest.fixture
async def servers():
    """Yields the servers, the watch, and its ledger."""
    told = Servers()

    def answer(name):
        async def say(request):
            return web.Response(text=told.held[name]) if name in told.held else web.Response(status=500)

        return say

    async with scripted(answer("a")) as first, scripted(answer("b")) as second:
        told.urls = [first, second]
        ledger = LedgerWatch("chat", lambda: {first: told.leases["a"], second: told.leases["b"]})
        options = [SignalOptions("engine", PRESETS["vllm"])]
        watch = SignalWatch("chat", options, told, lambda: None, lambda: told.urls, ledger)
        await watch._scraper.start()
        yield told, watch, ledger
        await watch._scraper.close()


def said(running: int, waiting: int = 0) -> str:
    return f"vllm:num_requests_running {running}\nvllm:num_requests_waiting {waiting}\n"


async def test_each_server_is_compared_with_its_own_slots_running_and_waiting_together(servers):
    told, watch, ledger = servers
    told.leases, told.held = {"a": 2, "b": 2}, {"a": said(1, 1), "b": said(2, 3)}
    await told.live(watch, LASTING + 20)
    (found,) = ledger.findings
    assert (found.replica, found.diagnosis, found.requests) == (told.urls[1], FOREIGN, 3)
    (family,) = ledger_metrics({"chat": ledger.findings})
    values = {sample.labels["diagnosis"]: sample.value for sample in family.samples}
    assert values == {"foreign_load": 1, "calls_missing": 0}
    told.held["b"] = said(2)
    await told.live(watch, 10)
    assert ledger.findings == ()


async def test_a_server_that_says_nothing_is_not_compared_and_one_that_left_is_forgotten(servers):
    told, watch, ledger = servers
    told.leases, told.held = {"a": 2, "b": 2}, {"b": said(7)}
    await told.live(watch, LASTING + 20)
    assert [found.replica for found in ledger.findings] == [told.urls[1]]
    told.urls = told.urls[:1]
    await told.live(watch, 10)
    assert ledger.findings == ()


async def test_signals_from_elsewhere_are_not_those_of_a_replica(servers):
    told, _, ledger = servers
    told.leases, told.held = {"a": 0, "b": 0}, {"a": said(7), "b": said(7)}
    options = SignalOptions("engine", PRESETS["vllm"], urls=tuple(f"{url}/metrics" for url in told.urls))
    watch = SignalWatch("chat", [options], told, lambda: None, lambda: told.urls, ledger)
    await watch._scraper.start()
    await told.live(watch, LASTING + 20)
    await watch._scraper.close()
    assert ledger.findings == ()
