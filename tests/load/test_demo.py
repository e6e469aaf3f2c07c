"""The demo itself, short: real processes, real requests, a real end."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

KEYS = {
    *("requests", "failures", "objective_met", "occupancy_mean", "time_in_band", "scale_ups", "scale_downs"),
    *("replica_seconds", "fixed_fleet_replica_seconds", "wait_p50", "wait_p95", "wait_p99"),
}


def start_demo(folder, *options):
    """Start it with its temporary files in `folder`."""
    command = [sys.executable, "-m", "load", "demo", "--server", "plain", *options]
    environment = {**os.environ, "TMPDIR": str(folder)}
    return subprocess.Popen(
        command,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def test_a_short_demo_serves_every_request_and_tells_what_happened(tmp_path):
    demo = start_demo(tmp_path, "--seconds", "2", "--json", "-")
    printed, said = demo.communicate(timeout=90)
    assert demo.returncode == 0, said
    result = json.loads(printed)
    assert result.keys() >= KEYS
    assert result["requests"] > 0 and result["failures"] == 0
    assert result["replica_seconds"] > 0 and 0 <= result["wait_p50"] <= result["wait_p99"]
    assert result["unexplained_p99"] < 1.0  # the client's own clock agrees with what the program said
    assert "emulated accelerator" in " ".join(said.split())
    assert not list(tmp_path.iterdir())


def test_ctrl_c_ends_the_demo_and_leaves_nothing_behind(tmp_path):
    demo = start_demo(tmp_path, "--seconds", "60")
    try:
        family = children_when_there_are(demo, 3)  # the program and two replicas
    finally:
        began = time.monotonic()
        os.killpg(demo.pid, signal.SIGINT)
        demo.communicate(timeout=60)
    assert demo.returncode == 130
    assert time.monotonic() - began < 15
    assert not [child for child in family if child.is_running() and child.status() != psutil.STATUS_ZOMBIE]
    assert not list(tmp_path.iterdir())


def children_when_there_are(demo, count):
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and demo.poll() is None:
        family = psutil.Process(demo.pid).children(recursive=True)
        if len(family) >= count:
            return family
        time.sleep(0.1)
    return pytest.fail("the demo did not start its replicas")


def test_a_result_that_could_not_be_written_is_refused_before_anything_starts(tmp_path):
    demo = start_demo(tmp_path, "--json", str(Path("nowhere", "result.json")))
    _, said = demo.communicate(timeout=30)
    assert demo.returncode == 2
    assert "nowhere" in said
