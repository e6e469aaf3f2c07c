"""The lag is the longest stall of the last seconds."""

import heapq

from autoscaler.telemetry.loop_lag import LoopLag


class LoopOnAVirtualClock:
    """Runs scheduled calls in order; a stall makes all of them late."""

    def __init__(self):
        self.now, self.calls = 0.0, []

    def time(self):
        return self.now

    def call_at(self, due, call, *arguments):
        handle = Handle()
        heapq.heappush(self.calls, (due, id(handle), handle, call, arguments))
        return handle

    def run_until(self, end):
        while self.calls and self.calls[0][0] <= end:
            due, _, handle, call, arguments = heapq.heappop(self.calls)
            self.now = max(self.now, due)
            if not handle.cancelled:
                call(*arguments)
        self.now = max(self.now, end)

    def stall(self, seconds):
        self.now += seconds


class Handle:
    cancelled = False

    def cancel(self):
        self.cancelled = True


def test_a_loop_that_keeps_up_has_no_lag():
    loop = LoopOnAVirtualClock()
    lag = LoopLag(loop)
    lag.start()
    loop.run_until(60.0)
    assert lag.seconds == 0.0


def test_a_stall_is_told_for_a_while_and_then_forgotten():
    loop = LoopOnAVirtualClock()
    lag = LoopLag(loop)
    lag.start()
    loop.run_until(20.0)
    loop.stall(0.5)
    loop.run_until(21.0)
    assert 0.4 <= lag.seconds <= 0.5
    loop.run_until(35.0)
    assert 0.4 <= lag.seconds <= 0.5
    loop.run_until(60.0)
    assert lag.seconds < 1e-9


def test_once_stopped_nothing_is_scheduled():
    loop = LoopOnAVirtualClock()
    lag = LoopLag(loop)
    lag.start()
    lag.stop()
    loop.run_until(60.0)
    assert loop.calls == []
