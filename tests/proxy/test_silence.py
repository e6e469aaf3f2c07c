"""The limit of silence rings when it should, and its timer is set as seldom as it can be."""

import asyncio
from collections.abc import Callable

from autoscaler.proxy.silence import Silence


class Handle:
    def __init__(self) -> None:
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True


class FakeLoop:
    """A clock that is turned by hand."""

    def __init__(self) -> None:
        self.now = 0.0
        self.timers: list[tuple[float, Callable[[], None], Handle]] = []

    def time(self) -> float:
        return self.now

    def call_at(self, when: float, call: Callable[[], None]) -> Handle:
        self.timers.append((when, call, handle := Handle()))
        return handle

    def advance(self, to: float) -> None:
        while due := [timer for timer in self.timers if timer[0] <= to and not timer[2].is_cancelled]:
            timer = min(due, key=lambda timer: timer[0])
            self.timers.remove(timer)
            self.now = timer[0]
            timer[1]()
        self.now = to


def a_silence() -> tuple[Silence, FakeLoop, list[float]]:
    loop = FakeLoop()
    rung: list[float] = []
    return Silence(loop, lambda: rung.append(loop.now)), loop, rung  # type: ignore[arg-type]


def test_it_rings_once_after_the_limit():
    silence, loop, rung = a_silence()
    silence.expect(5.0)
    loop.advance(100.0)
    assert rung == [5.0]


def test_what_is_heard_puts_it_off_and_sets_no_timer():
    silence, loop, rung = a_silence()
    silence.expect(5.0)
    for second in range(1, 5):
        loop.advance(second)
        silence.heard()
    assert len(loop.timers) == 1
    loop.advance(100.0)
    assert rung == [9.0]


def test_while_nothing_is_expected_it_does_not_ring():
    silence, loop, rung = a_silence()
    silence.expect(5.0)
    silence.expect(None)
    silence.heard()
    loop.advance(100.0)
    assert (rung, loop.timers) == ([], [])


def test_a_timer_that_is_there_serves_the_next_wait_too():
    silence, loop, rung = a_silence()
    silence.expect(5.0)
    silence.expect(None)
    loop.advance(3.0)
    silence.expect(5.0)
    assert len(loop.timers) == 1
    loop.advance(100.0)
    assert rung == [8.0]


def test_a_shorter_limit_is_kept_although_a_later_timer_is_set():
    silence, loop, rung = a_silence()
    silence.expect(300.0)
    loop.advance(1.0)
    silence.expect(2.0)
    loop.advance(1000.0)
    assert rung == [3.0]


def test_after_its_close_it_holds_no_timer():
    silence, loop, rung = a_silence()
    silence.expect(5.0)
    silence.close()
    loop.advance(100.0)
    assert rung == []
    assert [handle.is_cancelled for _, _, handle in loop.timers] == [True]


async def test_on_the_loop_of_production_it_rings_no_earlier():
    loop = asyncio.get_running_loop()
    rung: asyncio.Future[float] = loop.create_future()
    silence = Silence(loop, lambda: rung.set_result(loop.time()))
    began = loop.time()
    silence.expect(0.02)
    assert await asyncio.wait_for(rung, 5) - began >= 0.02 - 1e-6
