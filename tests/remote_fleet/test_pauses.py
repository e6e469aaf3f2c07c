"""Pauses before another attempt."""

from random import Random

import pytest

from autoscaler.remote_fleet import Pauses


def test_pauses_double_to_their_limit_and_are_shortened_by_up_to_a_half():
    pauses = Pauses(1.0, 8.0, Random(1))
    for whole in (1.0, 2.0, 4.0, 8.0, 8.0, 8.0):
        assert whole / 2 <= pauses.next() <= whole
    pauses.reset()
    assert pauses.next() <= 1.0


def test_the_same_seed_gives_the_same_pauses():
    one, other = (Pauses(1.0, 8.0, Random(7)) for _ in range(2))
    assert [one.next() for _ in range(5)] == [other.next() for _ in range(5)]


def test_pauses_that_cannot_be_are_refused():
    with pytest.raises(ValueError, match=r"got 2\.0, 1\.0 s"):
        Pauses(2.0, 1.0, Random(1))
