"""Measured starts as a distribution."""

import pytest

from autoscaler.cold_starts import MEASURED_MAX, ColdStarts


def test_until_one_was_measured_a_start_takes_what_was_stated():
    cold_starts = ColdStarts(initial=60.0)
    assert (cold_starts.mean, cold_starts.p90) == (60.0, 60.0)


def test_one_measurement_replaces_the_statement():
    cold_starts = ColdStarts(initial=60.0)
    cold_starts.measured(12.5)
    assert (cold_starts.mean, cold_starts.p90) == (12.5, 12.5)


def test_p90_is_the_ninth_of_ten():
    cold_starts = ColdStarts(initial=60.0)
    for duration in (10, 1, 9, 2, 8, 3, 7, 4, 6, 5):
        cold_starts.measured(float(duration))
    assert cold_starts.p90 == 9.0
    assert cold_starts.mean == pytest.approx(5.5)


def test_old_starts_are_forgotten():
    cold_starts = ColdStarts(initial=60.0)
    for duration in [1000.0, *[2.0] * MEASURED_MAX]:
        cold_starts.measured(duration)
    assert (cold_starts.mean, cold_starts.p90) == (2.0, 2.0)


def test_the_next_run_knows_what_this_one_measured(tmp_path):
    path = tmp_path / "cold_starts.json"
    ColdStarts(60.0, path).measured(3.0)
    assert ColdStarts(60.0, path).mean == 3.0


@pytest.mark.parametrize("content", [b"", b"[1.0, 2", b'{"mean": 3}', b'["1.0"]'])
def test_a_damaged_file_means_measuring_anew(tmp_path, content):
    path = tmp_path / "cold_starts.json"
    path.write_bytes(content)
    assert ColdStarts(60.0, path).mean == 60.0


@pytest.mark.parametrize("content", [b"[-5, 0]", b"[1e308, 1e308]", b"[NaN]", b"[" * 100_000])
def test_what_no_start_can_take_is_not_believed(tmp_path, content):
    path = tmp_path / "cold_starts.json"
    path.write_bytes(content)
    assert (ColdStarts(60.0, path).mean, ColdStarts(60.0, path).p90) == (60.0, 60.0)


def test_what_can_be_is_kept_beside_what_cannot(tmp_path):
    path = tmp_path / "cold_starts.json"
    path.write_bytes(b"[-5, 3.5, 0]")
    assert ColdStarts(60.0, path).mean == 3.5


def test_a_folder_that_was_deleted_meanwhile_is_made_again(tmp_path):
    path = tmp_path / "state" / "cold_starts.json"
    ColdStarts(60.0, path).measured(3.0)
    assert ColdStarts(60.0, path).mean == 3.0


def test_a_disk_that_takes_nothing_does_not_stop_the_measuring(tmp_path):
    (tmp_path / "file").touch()
    cold_starts = ColdStarts(60.0, tmp_path / "file" / "cold_starts.json")
    cold_starts.measured(3.0)
    assert cold_starts.mean == 3.0
