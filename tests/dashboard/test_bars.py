"""The bars of the terminal view, readable without colour."""

import pytest

from autoscaler.dashboard.bars import band_bar, replica_blocks, sparkline, wait_bar
from autoscaler.telemetry.status import ReplicasStatus

NAN = float("nan")


def blocks(width, desired=0, starting=0, ready=0, draining=0):
    return replica_blocks(ReplicasStatus(desired, starting, ready, draining), width).plain


def test_each_replica_is_a_block_and_each_state_a_shape():
    assert blocks(40, desired=4, ready=2, starting=1, draining=1) == "███ ███ ▒▒▒ ··· ░░░ "


def test_blocks_narrow_until_they_fit():
    assert blocks(11, ready=4) == "██ ██ ██ ██ "
    assert blocks(7, ready=4) == "█ █ █ █ "
    assert blocks(4, ready=4) == "████"


def test_more_than_fit_are_cut_visibly():
    assert blocks(10, ready=50) == "█████████…"


@pytest.mark.parametrize(
    ("occupancy", "bar"),
    [
        (0.0, "············┃──┃····"),
        (0.5, "━━━━━━━━━━··┃──┃····"),
        (0.7, "━━━━━━━━━━━━┃━─┃····"),
        (1.0, "━━━━━━━━━━━━┃━━┃━━━━"),
        (1.4, "━━━━━━━━━━━━┃━━┃━━━━"),
        (NAN, "············┃──┃····"),
    ],
)
def test_occupancy_runs_up_to_into_or_beyond_the_band(occupancy, bar):
    assert band_bar(occupancy, 0.60, 0.75, 20).plain == bar


@pytest.mark.parametrize(
    ("wait", "bar"),
    [
        (0.0, "········┃·"),
        (2.5, "━━━━····┃·"),
        (5.0, "━━━━━━━━┃·"),
        (99.0, "━━━━━━━━┃━"),
        (NAN, "········┃·"),
    ],
)
def test_a_wait_runs_up_to_the_objective_or_beyond(wait, bar):
    assert wait_bar(wait, 5.0, 10).plain == bar


def test_any_wait_is_beyond_an_objective_of_none():
    assert wait_bar(0.1, 0.0, 10).plain == "━━━━━━━━┃━"
    assert wait_bar(0.0, 0.0, 10).plain == "········┃·"


def test_a_sparkline_shows_the_last_values_and_does_not_exaggerate():
    assert sparkline([9.0, 0.0, 1.0, 8.0], 3, "blue").plain == "▁▁█"
    assert sparkline([80.0, 40.0, NAN], 5, "blue").plain == "  █▄ "
