"""The table of the week: whose rows are whose, and what they learn."""

import numpy as np
import pytest

from forecasting.season_table import DAY, DEPARTURE, KIND, LAST_DAY, LAST_WEEK, WEEK, SeasonTable

HOURS = 24
MONDAY = float(np.datetime64("2025-01-06T00:00", "s").astype(int))


def a_table(weeks, start=np.nan, zone="UTC", by_day=lambda day: 1.0):
    """A table of hours that has lived through `weeks`; every hour of day d brings `by_day(d)`."""
    table = SeasonTable(HOURS, zone)
    table.begin(start, np.full(HOURS, by_day(0)))
    for tick in range(HOURS, weeks * 7 * HOURS):
        table.learn(tick, by_day(tick // HOURS))
    return table


def test_without_a_date_rows_are_counted_from_the_start():
    table = a_table(1)
    assert table.row(7 * HOURS + 5) == 5
    assert table.rows(-1, np.array([1, 2, 7 * HOURS + 1])).tolist() == [0, 1, 0]


def test_with_a_date_row_0_is_monday_at_0():
    table = SeasonTable(HOURS)
    table.begin(MONDAY + 2 * 86_400 + 3600, np.ones(HOURS))
    assert table.row(0) == 2 * HOURS + 1


def test_rows_follow_the_wall_clock_when_clocks_change():
    sunday = float(np.datetime64("2025-03-30T00:00", "s").astype(int))  # 1:00 in Berlin; at 2:00 it is 3:00
    table = SeasonTable(HOURS, "Europe/Berlin")
    table.begin(sunday, np.ones(HOURS))
    first = 6 * HOURS + 1
    assert [table.row(tick) - first for tick in range(4)] == [0, 2, 3, 4]
    assert (table.rows(0, np.arange(4)) - first).tolist() == [0, 2, 3, 4]


def test_in_autumn_an_hour_comes_twice():
    sunday = float(np.datetime64("2025-10-26T00:00", "s").astype(int))  # 2:00 in Berlin; at 3:00 it is 2:00
    table = SeasonTable(HOURS, "Europe/Berlin")
    table.begin(sunday, np.ones(HOURS))
    assert (table.rows(0, np.arange(3)) - (6 * HOURS + 2)).tolist() == [0, 0, 1]


def test_a_mean_of_the_week_knows_its_own_day_only():
    table = a_table(4, by_day=lambda day: 10.0 if day % 7 == 3 else 1.0)
    assert table.cells_[3 * HOURS, WEEK] == pytest.approx(10.0)
    assert table.cells_[4 * HOURS, WEEK] == pytest.approx(1.0)
    assert 1.0 < table.cells_[0, DAY] < 4.0


def test_working_days_and_weekends_are_told_apart_before_a_week_is_over():
    table = a_table(1, start=MONDAY, by_day=lambda day: 2.0 if day in (5, 6) else 8.0)
    assert table.cells_[0, KIND] == pytest.approx(8.0)
    assert table.cells_[6 * HOURS, KIND] == pytest.approx(2.0)


def test_what_is_not_known_yet_is_as_the_day_is():
    table = SeasonTable(HOURS)
    table.begin(np.nan, np.arange(24.0))
    other_days = table.cells_[HOURS:].reshape(6, HOURS, -1)
    for column in (DAY, WEEK, KIND, LAST_DAY, LAST_WEEK):
        assert np.all(other_days[:, :, column] == np.arange(24.0))
    assert np.all(table.cells_[:, DEPARTURE] == 0.0)


def test_the_departure_is_from_the_mean_before():
    table = a_table(2)
    table.learn(2 * 7 * HOURS, 5.0)
    assert table.cells_[0, DEPARTURE] == pytest.approx(4.0)
    assert table.cells_[0, LAST_DAY] == 5.0


@pytest.mark.parametrize(("arguments", "match"), [((1,), "season_length"), ((24, "Nowhere/Land"), "Nowhere")])
def test_impossible_parameters_are_refused(arguments, match):
    with pytest.raises(ValueError, match=match):
        SeasonTable(*arguments)
