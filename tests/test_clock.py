"""The clock that is moved by hand."""

import pytest

from autoscaler.clock import SystemClock, VirtualClock


def test_a_virtual_clock_moves_forward_and_the_calendar_with_it():
    clock = VirtualClock(now=10.0, wall_time=1000.0)
    clock.move_to(15.0)
    assert (clock.now(), clock.wall_time()) == (15.0, 1005.0)
    with pytest.raises(ValueError, match="does not go back"):
        clock.move_to(14.0)


def test_the_system_clock_never_goes_back():
    clock = SystemClock()
    assert clock.now() <= clock.now()
    assert clock.wall_time() > 1.7e9
