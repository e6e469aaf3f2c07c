"""The learned line: exact where the law is, cautious where nothing was measured, quick to follow a change."""

import random
from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from autoscaler.dispatch.learned_line import AGE_MAX, CHANGED_AFTER, GROWTH_MAX, SEEN_MIN, LearnedLine

positive = st.floats(1e-4, 1.0)
sizes_seen = st.lists(st.integers(1, 64), min_size=30, max_size=120)


def a_line(law, sizes, *, gap=1.0) -> LearnedLine:
    """Learned from `law`, one time each `gap` seconds."""
    line = LearnedLine()
    for number, size in enumerate(sizes):
        line.observe(size, law(size), now=number * gap)
    return line


def law_of(alpha, beta):
    return lambda size: alpha + beta * size


def test_nothing_known_gives_no_line_and_begins_with_one():
    line = LearnedLine()
    assert line.line is None
    assert line.seconds(4) is None
    assert line.size_max_seen == 0
    assert line.largest_within(10.0, size_max=64) == 1


def test_few_times_are_no_line_however_well_they_fit():
    assert a_line(law_of(0.020, 0.002), [1, 2, 4, 8] * 4).line is None
    assert a_line(law_of(0.020, 0.002), [1, 2, 4, 8] * 5).line is not None


def test_sizes_that_hardly_differ_give_no_slope():
    assert a_line(law_of(0.020, 0.002), [30, 31, 32] * 50).line is None


def test_a_size_seen_once_does_not_count():
    assert a_line(law_of(0.020, 0.002), [8] * 40 + [1]).line is None
    assert a_line(law_of(0.020, 0.002), [8] * 40 + [1] * 3).line is not None


@given(alpha=positive, beta=positive, sizes=sizes_seen)
def test_an_exact_law_is_found(alpha, beta, sizes):
    line = a_line(law_of(alpha, beta), sizes * 3).line
    assume(line is not None)
    assert line.alpha == pytest.approx(alpha, rel=0.05, abs=0.05 * beta)
    assert line.beta == pytest.approx(beta, rel=0.05)


def test_a_server_that_takes_as_long_for_any_size_has_no_slope():
    line = a_line(law_of(0.050, 0.0), [1, 2, 4, 8, 16] * 10)
    assert line.line.alpha == pytest.approx(0.050)
    assert line.line.beta == pytest.approx(0.0, abs=1e-12)
    assert line.largest_within(0.050, size_max=1000) == GROWTH_MAX * 16
    assert line.largest_within(0.049, size_max=1000) == 1


def test_a_server_that_works_one_by_one_has_no_constant_part():
    line = a_line(law_of(0.0, 0.010), [1, 2, 4, 8] * 10)
    assert line.line.alpha == pytest.approx(0.0, abs=1e-9)
    assert line.largest_within(0.040, size_max=100) == 4


@given(law=st.dictionaries(st.integers(1, 32), positive, min_size=3, max_size=20))
def test_whatever_the_times_no_part_of_the_line_is_negative(law):
    line = a_line(law.__getitem__, sorted(law) * 10).line
    if line is not None:
        assert line.alpha >= 0 and line.beta >= 0


@given(
    alpha=positive, beta=positive, sizes=sizes_seen, seconds=st.floats(0, 10), size_max=st.integers(1, 500)
)
def test_a_size_is_within_its_bounds_and_as_quick_as_asked(alpha, beta, sizes, seconds, size_max):
    line = a_line(law_of(alpha, beta), sizes)
    size = line.largest_within(seconds, size_max)
    most = max(1, min(size_max, GROWTH_MAX * line.size_max_seen))
    assert 1 <= size <= most
    if line.line is not None:
        assert size == 1 or line.seconds(size) <= seconds * (1 + 1e-6)
        assert size == most or line.seconds(size + 1) > seconds * (1 - 1e-6)


@given(sizes=sizes_seen, alpha=positive, beta=positive, seconds=st.tuples(st.floats(0, 5), st.floats(0, 5)))
def test_more_time_never_makes_a_smaller_size(sizes, alpha, beta, seconds):
    line = a_line(law_of(alpha, beta), sizes)
    assert line.largest_within(min(seconds), 200) <= line.largest_within(max(seconds), 200)


@given(sizes=sizes_seen, alpha=positive, beta=positive, unit=st.floats(1e-3, 1e3))
def test_the_unit_of_time_does_not_matter(sizes, alpha, beta, unit):
    seconds = a_line(law_of(alpha, beta), sizes).line
    others = a_line(law_of(alpha * unit, beta * unit), sizes).line
    assert (seconds is None) == (others is None)
    if seconds is not None and others is not None:
        assert others.alpha == pytest.approx(unit * seconds.alpha, rel=1e-6, abs=1e-9 * unit)
        assert others.beta == pytest.approx(unit * seconds.beta, rel=1e-6, abs=1e-9 * unit)


def test_from_one_on_a_limit_grows_by_doubling():
    line, law, limit, limits = LearnedLine(), law_of(0.020, 0.002), 1, []
    for batch in range(60):
        limit = line.largest_within(0.100, size_max=512)
        limits.append(limit)
        line.observe(limit, law(limit), now=batch * 0.1)
    assert all(after <= GROWTH_MAX * before for before, after in pairwise(limits))
    assert limits[:12:SEEN_MIN] == [1, 2, 4, 8]
    assert limits[-1] == 40  # 20 ms + 2 ms n = 100 ms


def test_before_there_is_a_line_one_goes_no_farther_than_towards_what_was_too_slow():
    line = a_line(law_of(0.0, 0.010), [4, 8] * SEEN_MIN)
    assert line.line is None
    assert line.largest_within(0.100, size_max=64) == 16  # both were quick enough
    assert line.largest_within(0.060, size_max=64) == 6  # 4 was, 8 was not
    assert line.largest_within(0.030, size_max=64) == 3  # not even 4 was


def test_before_there_is_a_line_a_far_larger_size_that_was_too_slow_is_no_reason_to_grow_faster():
    line = a_line({4: 0.040, 100: 0.051}.__getitem__, [4, 100] * SEEN_MIN)
    assert line.line is None
    assert line.largest_within(0.050, size_max=200) == 8


def test_a_size_that_was_tried_once_is_not_doubled():
    line = a_line(law_of(0.0, 0.010), [4] * SEEN_MIN + [8])
    assert line.size_max_seen == 4
    assert line.largest_within(10.0, size_max=64) == 8


@pytest.mark.parametrize("factor", [30.0, 1000.0, 0.0])
def test_one_odd_time_moves_hardly_anything(factor):
    line, law = a_line(law_of(0.020, 0.002), [1, 2, 4, 8, 16] * 10), law_of(0.020, 0.002)
    line.observe(16, factor * law(16), now=50.0)
    assert line.line.alpha == pytest.approx(0.020, rel=0.05)
    assert line.line.beta == pytest.approx(0.002, rel=0.05)


@pytest.mark.parametrize("place", range(5))
def test_an_odd_time_among_the_first_moves_hardly_anything(place):
    line, law = LearnedLine(), law_of(0.020, 0.002)
    for size in (1, 2, 4, 8):
        for number in range(6):
            odd = size == 8 and number == place
            line.observe(size, 50.0 if odd else law(size), now=float(number))
    assert line.seconds(8) == pytest.approx(law(8), rel=0.05)


def test_noise_is_averaged_out():
    rng, line = random.Random(7), LearnedLine()
    for number in range(2000):
        size = rng.randint(1, 32)
        line.observe(size, (0.020 + 0.002 * size) * rng.gammavariate(25, 1 / 25), now=number * 0.1)
    assert line.seconds(1) == pytest.approx(0.022, rel=0.1)
    assert line.seconds(32) == pytest.approx(0.084, rel=0.1)


@pytest.mark.parametrize("factor", [3.0, 0.25])
def test_a_server_that_has_changed_is_followed_within_a_few_times(factor):
    line, law = a_line(law_of(0.020, 0.002), [1, 2, 4, 8, 16] * 20), law_of(0.020, 0.002)
    for number in range(CHANGED_AFTER * 5 + 20):
        size = (1, 2, 4, 8, 16)[number % 5]
        line.observe(size, factor * law(size), now=100.0 + number)
    assert line.seconds(16) == pytest.approx(factor * law(16), rel=0.05)


def test_hours_at_one_size_do_not_wash_out_the_slope():
    line, law = a_line(law_of(0.020, 0.002), [1, 2, 4, 8] * 10), law_of(0.020, 0.002)
    for number in range(5000):
        line.observe(16, law(16), now=40.0 + number * 0.3)
    assert line.line.beta == pytest.approx(0.002, rel=0.05)


def test_the_newest_times_say_how_high_the_line_lies_and_the_old_ones_how_steep_it_is():
    line, law = a_line(law_of(0.020, 0.002), [1, 2, 4, 8, 16] * 10), law_of(0.020, 0.002)
    for number in range(400):
        line.observe(16, 1.15 * law(16), now=3600.0 + number)  # a little slower, for an hour
    assert line.seconds(16) == pytest.approx(1.15 * law(16), rel=0.01)
    assert line.line.beta == pytest.approx(0.0025, rel=0.3)


def test_what_is_too_old_is_forgotten():
    line = a_line(law_of(0.020, 0.002), [1, 2, 4, 8, 64] * 10)
    for _ in range(SEEN_MIN):
        line.observe(2, 0.024, now=50.0 + AGE_MAX + 1.0)
    assert line.line is None
    assert line.size_max_seen == 2


@pytest.mark.parametrize("size, seconds", [(0, 1.0), (1, -1.0), (1, float("nan")), (1, float("inf"))])
def test_an_impossible_time_is_refused(size, seconds):
    with pytest.raises(ValueError, match="need size >= 1 and finite seconds >= 0"):
        LearnedLine().observe(size, seconds, now=0.0)


def test_its_repr_tells_the_law():
    line = a_line(law_of(0.020, 0.002), [1, 2, 4, 8] * 10)
    assert repr(line) == "<LearnedLine 0.02s+0.002s*n sizes=4 size_max_seen=8>"
    assert "unknown" in repr(LearnedLine())
