"""The trial of a whole fleet, briefly: sidecars, two controllers, a real Prometheus, and kills in between.

`python -m load trial` does it at length, on a schedule. Here every step waits for what it needs, so that a
slow machine takes longer and finds the same.
"""

import asyncio
from collections.abc import Iterator

import pytest

from load.generator import Generator, Outgoing
from load.trial.plan import Trial
from load.trial.prometheus import ABSENT, installed
from load.trial.run import Parts, started
from load.trial.troubles import TAKEOVER_MAX

LOW, HIGH = 6.0, 36.0
SHORT = Trial(
    service=0.4,
    load_time=0.3,
    hold=3.0,
    replicas_max=6,
    scrape=0.5,
    window=4.0,
    carry=3.0,
    away=5.0,
    control_interval=1.0,
)


class Load:
    """Sends at a rate that the test sets, to doors in turn; ends at rate 0."""

    def __init__(self, parts: Parts):
        self.rate = HIGH
        self.generator = Generator(lambda index: Outgoing(f"{parts.fleet.door()}/v1", body=b"?"), tries_max=8)

    async def run(self) -> None:
        await self.generator.run(self._arrivals())

    def _arrivals(self) -> Iterator[float]:
        at = 0.0
        while self.rate:
            at += 1 / self.rate
            yield at


async def until(condition, within: float = 30.0) -> None:
    async with asyncio.timeout(within):
        while not condition():
            await asyncio.sleep(0.05)


@pytest.mark.skipif(not installed(), reason=ABSENT)
async def test_kills_and_an_absent_prometheus_change_no_size_and_lose_nothing(tmp_path):
    needed = SHORT.needed_at(HIGH)
    assert needed > SHORT.needed_at(LOW) == SHORT.replicas_min
    async with started(SHORT, tmp_path) as parts:
        fleet, troubles, load = parts.fleet, parts.troubles, Load(parts)
        sending = asyncio.create_task(load.run())

        await until(lambda: fleet.desired >= needed)
        peak = len(fleet.asked)
        comes_back = asyncio.create_task(troubles.sidecar_killed())
        await troubles.leader_killed()
        (takeover,) = [each.takeover for each in troubles.happened if each.takeover is not None]
        assert takeover <= TAKEOVER_MAX

        await troubles.prometheus_away(parts.prometheus)
        await comes_back
        assert fleet.restarts == 1
        await asyncio.sleep(3.0)  # for what is counted since Prometheus came back fills no window yet
        assert all(each.desired >= needed for each in fleet.asked[peak:]), fleet.asked
        assert len({each.by for each in fleet.asked[peak:]}) <= 1

        parts.prometheus.stop()
        load.rate, asked = LOW, len(fleet.asked)
        await asyncio.sleep(SHORT.carry + 2.0)
        assert all(each.desired >= needed for each in fleet.asked[asked:]), fleet.asked
        parts.prometheus.go_on()
        await until(lambda: fleet.desired == SHORT.replicas_min)

        load.rate = 0.0
        await sending
    records = load.generator.records
    assert len(records) > 100
    assert [record for record in records if record.failed or not record.finished] == []
