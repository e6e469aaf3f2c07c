"""What is replayed, and reading it from a file."""

import gzip

import numpy as np
import pytest

from autoscaler.errors import UsageError
from autoscaler.replay.scenario import Scenario, read_series


def test_arrivals_lie_in_their_intervals_and_services_follow_their_law():
    scenario = Scenario(np.array([3.0, 0.0, 2.0]), 10.0, service_time_mean=4.0, service_scv=0.5)
    times = scenario.arrival_times(np.random.default_rng(1))
    assert np.histogram(times, bins=[0, 10, 20, 30])[0].tolist() == [3, 0, 2]
    services = scenario.service_times(200_000, np.random.default_rng(1))
    assert services.mean() == pytest.approx(4.0, rel=0.01)
    assert services.var() / services.mean() ** 2 == pytest.approx(0.5, rel=0.03)


def test_a_service_without_variance_is_a_constant():
    scenario = Scenario(np.array([1.0]), 1.0, service_time_mean=4.0, service_scv=0.0)
    assert set(scenario.service_times(10, np.random.default_rng(1))) == {4.0}


def written(path, text: str):
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text)
    return path


@pytest.mark.parametrize("name", ["s.csv", "s.csv.gz"])
def test_a_series_is_read_and_absent_intervals_are_zero(tmp_path, name):
    path = written(tmp_path / name, "start_s,interval_s,requests\n0,60,5\n60,60,6\n180,60,7\n")
    counts, interval = read_series(path)
    assert (counts.tolist(), interval) == ([5.0, 6.0, 0.0, 7.0], 60.0)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("time,requests\n0,1\n1,2\n", "no column 'start_s'"),
        ("start_s,requests\n0,1\n1,many\n", r":3: requests: got 'many'; a number is needed"),
        ("start_s,requests\n0,1\n1,-2\n", "a finite number >= 0"),
        ("start_s,requests\n0,1\n", "at least 2"),
        ("start_s,requests\n0,1\n2,1\n5,1\n", "even steps"),
        ("start_s,requests\n5,1\n0,1\n", "must ascend"),
    ],
)
def test_what_is_no_series_is_refused_with_its_place(tmp_path, text, complaint):
    with pytest.raises(UsageError, match=complaint):
        read_series(written(tmp_path / "s.csv", text))


def test_a_file_that_is_not_there_is_a_clear_error(tmp_path):
    with pytest.raises(UsageError, match="cannot be read"):
        read_series(tmp_path / "none.csv")
