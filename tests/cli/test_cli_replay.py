"""`autoscaler replay` of what cannot be replayed."""

import pytest

from autoscaler.cli.replay import replay_series
from autoscaler.errors import UsageError


@pytest.mark.parametrize(
    "rows, service_time, said",
    [
        ("0,5\n60,5\n120,1e18\n", 1.0, r"d.csv: 1e\+18 requests are more than the 50,000,000 .*; cut the"),
        (
            "0,5\n60,5\n100000000,5\n",
            1.0,
            "d.csv: 100,000,080 s in steps of 60 s, .* the 5,000,000 intervals",
        ),
        ("0,5\n60,5\n1e300,5\n", 1.0, r"d.csv: spans 1e\+291 s in steps of 60 s, more than the 50,000,000"),
        ("0,1000000\n60,5\n", 86_400.0, "--service-time 1d: .* more than the 100,000 that can be"),
    ],
)
def test_more_than_can_be_replayed_names_the_limit_and_the_remedy(rows, service_time, said, tmp_path):
    (tmp_path / "d.csv").write_text(f"start_s,requests\n{rows}")
    with pytest.raises(UsageError, match=said):
        replay_series(
            tmp_path / "d.csv", 0, True, history=0.0, interval=None, wait=5.0, service_time_mean=service_time
        )
