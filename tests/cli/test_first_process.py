"""SIGTERM to the first process of a container, while the program is still being imported."""

import os
import shutil
import signal
import subprocess
import sys

import psutil
import pytest

from autoscaler import first_process

UNSHARE = ["unshare", "--pid", "--fork", "--kill-child"]


@pytest.fixture
def handlers(monkeypatch):
    set_to = {}
    monkeypatch.setattr(first_process.signal, "signal", set_to.__setitem__)
    return set_to


def test_the_first_process_has_a_handler_and_every_other_one_needs_none(handlers, monkeypatch):
    first_process.end_when_told()
    assert handlers == {}
    monkeypatch.setattr(os, "getpid", lambda: 1)
    first_process.end_when_told()
    assert handlers.keys() == {signal.SIGTERM, signal.SIGHUP}
    with pytest.raises(SystemExit) as ended:
        handlers[signal.SIGTERM](signal.SIGTERM, None)
    assert ended.value.code == 143


def can_unshare() -> bool:
    there = shutil.which("unshare") is not None
    return there and subprocess.run([*UNSHARE, "true"], capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(not can_unshare(), reason="no process namespace can be made here")
def test_it_ends_while_it_still_starts():
    script = (
        "import signal, sys, time, types; from autoscaler import __main__ as program; "
        "command_line = types.ModuleType('autoscaler.cli'); "
        "command_line.main = lambda: (print('starts', flush=True), time.sleep(60)); "
        "sys.modules['autoscaler.cli'] = command_line; program.main()"
    )
    outside = subprocess.Popen([*UNSHARE, sys.executable, "-c", script], stdout=subprocess.PIPE)
    assert outside.stdout is not None
    assert outside.stdout.readline() == b"starts\n"
    [inside] = psutil.Process(outside.pid).children()
    inside.send_signal(signal.SIGTERM)
    assert outside.wait(timeout=20.0) == 143
