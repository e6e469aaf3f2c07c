"""What is imported fills in what was not measured, and nothing else; once or often is the same."""

import math
import sqlite3
from math import nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.domain import Binding, Fleet, Hold, Objective, Observation, Reason
from autoscaler.errors import HistoryLocked, UsageError
from autoscaler.scaling import Controller, DecisionPolicy
from autoscaler.telemetry.history import History
from autoscaler.telemetry.history_import import Imported, import_arrivals, uncovered
from autoscaler.telemetry.history_reader import HistoryReader
from autoscaler.telemetry.history_retention import DAY, HOUR, Retention
from forecasting.series import Series

NOW = 1_790_000_000 // 3600 * 3600.0


@pytest.fixture
def path(tmp_path):
    return tmp_path / "history.sqlite"


def series(*counts: float, interval: float = 60.0, end: float = NOW) -> Series:
    return Series(np.array(counts, dtype=float), interval, end - interval * len(counts))


def measure(path, start: float, arrivals: int, interval: float = 10.0, pool: str = "chat") -> None:
    seen = Observation(interval, arrivals, 0, 0.0, 0.0, 0.0, 0, 0, 0.0, start + interval)
    with History(path) as history:
        history.record(
            pool,
            seen,
            Fleet(1, 0, 0, 1, 1.0, 1.0),
            Hold(1, Reason.WITHIN_BAND, Binding.BAND),
            0.0,
            start + interval,
        )


def arrivals(path, interval: float, since: float, until: float = NOW, pool: str = "chat") -> list[float]:
    with HistoryReader(path) as reader:
        return reader.arrivals(pool, interval, since, until).tolist()


def test_a_new_history_begins_with_what_was_imported(path):
    assert import_arrivals(path, "chat", series(4, 0, 6), NOW) == Imported(3, 3, 10, 0)
    assert arrivals(path, 60.0, NOW - 180) == [4.0, 0.0, 6.0]
    with HistoryReader(path) as reader:
        assert [(span.pool, span.start_wall, span.end_wall) for span in reader.pools()] == [
            ("chat", NOW - 180, NOW)
        ]
        assert reader.intervals("chat")[0].service_time_sum is None


def test_a_gap_stays_a_gap(path):
    import_arrivals(path, "chat", series(4, nan, 6), NOW)
    assert np.allclose(arrivals(path, 60.0, NOW - 180), [4.0, nan, 6.0], equal_nan=True)


def test_importing_again_changes_nothing(path):
    import_arrivals(path, "chat", series(4, 0, 6), NOW)
    assert import_arrivals(path, "chat", series(40, 50, 60), NOW) == Imported(3, 0, 0, 0)
    assert import_arrivals(path, "chat", series(7, 8, 9, 9), NOW).added == 1
    assert arrivals(path, 60.0, NOW - 240) == [7.0, 4.0, 0.0, 6.0]


def test_what_was_measured_stays_and_what_is_left_of_its_interval_gets_its_share(path):
    measure(path, NOW - 100, arrivals=50)
    import_arrivals(path, "chat", series(6, 12, 6), NOW)
    with HistoryReader(path) as reader:
        rows = [(row.start_wall - NOW, row.interval, row.arrivals) for row in reader.intervals("chat")]
    assert rows == [(-180, 60, 6), (-120, 20, 4), (-100, 10, 50), (-90, 30, 6), (-60, 60, 6)]


def test_a_sliver_between_two_measured_intervals_is_left_alone(path):
    measure(path, NOW - 60, arrivals=1, interval=30.0)
    measure(path, NOW - 29.9, arrivals=1, interval=29.9)
    assert import_arrivals(path, "chat", series(6), NOW).added == 0


def test_another_pool_is_another_history(path):
    measure(path, NOW - 60, arrivals=50, interval=60.0, pool="embed")
    import_arrivals(path, "chat", series(6), NOW)
    assert arrivals(path, 60.0, NOW - 60) == [6.0]
    assert arrivals(path, 60.0, NOW - 60, pool="embed") == [50.0]


def test_fractions_are_carried_on_so_that_the_sum_is_kept(path):
    import_arrivals(path, "chat", series(*[0.3] * 100), NOW)
    assert sum(arrivals(path, 60.0, NOW - 6000)) == 30.0


def test_what_is_old_is_rolled_up_and_what_is_older_left_out(path):
    keep = Retention(fine=6 * HOUR, rolled_up=2 * DAY)
    done = import_arrivals(path, "chat", series(*[1] * 3 * 1440), NOW, keep)
    assert done == Imported(2 * 1440, 2 * 1440, 2 * 1440, 1440)
    with HistoryReader(path) as reader:
        rows = reader.intervals("chat")
    assert [row.interval for row in rows] == [3600.0] * 42 + [60.0] * 360
    assert rows[0].busy_slots_mean is None
    assert import_arrivals(path, "chat", series(*[1] * 3 * 1440), NOW, keep).added == 0


def test_what_a_wrong_clock_wrote_makes_nothing_old(path):
    import_arrivals(path, "chat", series(*[1] * 1440), NOW)
    measure(path, NOW + 400 * DAY, arrivals=5)
    assert import_arrivals(path, "chat", series(*[1] * 1500), NOW) == Imported(1500, 60, 60, 0)
    assert sum(arrivals(path, 60.0, NOW - 1500 * 60)) == 1500.0


def test_what_has_not_been_yet_is_refused_before_anything_is_forgotten(path):
    measure(path, NOW - 60, arrivals=5)
    with pytest.raises(UsageError, match="ends 365d from now"):
        import_arrivals(path, "chat", series(1, 2, end=NOW + 365 * DAY), NOW)
    assert arrivals(path, 10.0, NOW - 60, NOW - 50) == [5.0]


def test_a_history_that_is_being_written_is_left_alone(path):
    with History(path), pytest.raises(HistoryLocked):
        import_arrivals(path, "chat", series(1), NOW)


def test_a_disk_that_refuses_leaves_the_history_as_it_was(path, monkeypatch):
    import_arrivals(path, "chat", series(5), NOW)

    def refuses(*given):
        raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr("autoscaler.telemetry.history_import.tidy", refuses)
    with pytest.raises(UsageError, match="disk I/O error"):
        import_arrivals(path, "chat", series(7, 8), NOW)
    assert np.allclose(arrivals(path, 60.0, NOW - 120), [nan, 5.0], equal_nan=True)
    History(path).close()  # and its lock is free


def test_a_folder_that_is_not_there_is_named(path):
    with pytest.raises(UsageError, match="there is no folder"):
        import_arrivals(path.parent / "absent" / "h.db", "chat", series(1), NOW)


def test_a_controller_begins_with_the_season_that_was_imported(path):
    hours = np.arange(14 * 24)
    import_arrivals(path, "chat", series(*(3600 + 1800 * np.sin(hours / 24 * 2 * np.pi)), interval=HOUR), NOW)
    policy = DecisionPolicy(forecast_interval=HOUR)
    controller = Controller(Objective(), policy)
    with HistoryReader(path) as history:
        controller.warm(history.arrivals("chat", HOUR, NOW - policy.history_max, NOW), HOUR, NOW)
    job = controller.refit_due(0.0)
    assert job is not None
    assert job().failure == ""


# --- what is left uncovered


def test_what_nothing_covers_is_left_as_it_is():
    of, parts = uncovered(np.array([0.0, 10.0]), np.array([10.0, 20.0]), np.empty((0, 2)))
    assert (of.tolist(), parts.tolist()) == ([0, 1], [[0.0, 10.0], [10.0, 20.0]])


spans = st.lists(st.tuples(st.integers(0, 60), st.integers(1, 15)), max_size=8)


@given(spans, st.integers(1, 12), st.sets(st.integers(0, 11)))
def test_every_moment_is_covered_once(covered, intervals, missing):
    length = 5
    kept = [n for n in range(intervals) if n not in missing]
    starts = np.array([float(length * n) for n in kept])
    there = np.array(sorted((float(start), float(start + long)) for start, long in covered)).reshape(-1, 2)
    of, parts = uncovered(starts, starts + length, there)

    def lies_in(moment: float, stretches: np.ndarray) -> int:
        return int(((stretches[:, 0] <= moment) & (moment < stretches[:, 1])).sum())

    wanted = np.column_stack([starts, starts + length])
    for moment in np.arange(0.5, length * intervals):
        free = lies_in(moment, there) == 0 and lies_in(moment, wanted) == 1
        assert lies_in(moment, parts) == free
    assert all(
        starts[n] <= start < end <= starts[n] + length for n, (start, end) in zip(of, parts, strict=True)
    )
    assert not any(math.isinf(edge) for edge in parts.ravel())
