"""The thread that reads: what it tells, and what a driver that breaks or hangs costs."""

import threading

from autoscaler.nvml import Fault, FaultKind
from autoscaler.telemetry import gpu_watch
from autoscaler.telemetry.gpu_reading import GpuReading
from autoscaler.telemetry.gpu_watch import TOO_OLD, GpuWatch


class Time:
    """A clock that is set."""

    time = 100.0

    def now(self):
        return self.time

    def wall_time(self):
        return self.time


class Driver:
    """Answers one after the other, from a script; tells when each has been asked for."""

    def __init__(self, *answers):
        self._answers = list(answers)
        self.closed = threading.Event()
        self.exhausted = threading.Event()
        self._hang = threading.Event()

    def read(self):
        if not self._answers:
            self.exhausted.set()
            self._hang.wait(5)
            return ()
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def close(self):
        self.closed.set()

    def answers_again(self):
        self._hang.set()


GPU = GpuReading(0, busy_ratio=0.5)


def a_watch(monkeypatch, *answers):
    monkeypatch.setattr(gpu_watch, "INTERVAL", 0.0)
    monkeypatch.setattr(gpu_watch, "_WITHOUT_DRIVER", 0.0)
    time, driver = Time(), Driver(*answers)
    watch = GpuWatch(time, driver)
    watch.start()
    assert driver.exhausted.wait(5)
    return watch, time, driver


def test_the_last_reading_is_told_until_it_is_too_old(monkeypatch):
    watch, time, driver = a_watch(monkeypatch, (GPU,))
    assert watch.readings == (GPU,)
    time.time += TOO_OLD + 1  # the driver hangs meanwhile
    assert watch.readings == ()
    watch.stop()
    driver.answers_again()
    assert driver.closed.wait(5)


def test_a_reading_that_breaks_is_survived(monkeypatch):
    watch, _, driver = a_watch(monkeypatch, RuntimeError("broken"), Fault(FaultKind.OTHER, "no"), (GPU,))
    assert watch.readings == (GPU,)
    watch.stop()
    driver.answers_again()


def test_a_stop_does_not_wait_for_a_driver_that_hangs(monkeypatch):
    watch, _, driver = a_watch(monkeypatch, (GPU,))
    watch.stop()
    assert not driver.closed.is_set()
    driver.answers_again()


def test_before_the_first_reading_there_is_none():
    assert GpuWatch(Time(), Driver()).readings == ()
