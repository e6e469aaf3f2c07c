"""Fits run in another process, with a time limit."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from functools import partial

import pytest

from autoscaler import fit_process
from autoscaler.fit_process import FitFailed, FitProcesses, run_fit


async def test_a_job_runs_in_another_process_and_its_result_comes_back():
    assert await run_fit(os.getpid, time_limit=30.0) != os.getpid()


async def test_what_a_job_prints_does_not_spoil_the_result():
    assert await run_fit(partial(print, "noise"), time_limit=30.0) is None


async def test_it_takes_no_modules_of_the_folder_at_hand(tmp_path, monkeypatch):
    (tmp_path / "pickle.py").write_text("raise SystemExit('a file of somebody else was run')")
    monkeypatch.chdir(tmp_path)
    assert await run_fit(partial(divmod, 7, 2), time_limit=30.0) == (3, 1)


async def test_a_job_that_takes_too_long_is_ended():
    with pytest.raises(FitFailed, match=r"longer than 0\.2 s"):
        await run_fit(partial(time.sleep, 600.0), time_limit=0.2)


async def test_a_job_that_breaks_says_why():
    with pytest.raises(FitFailed, match="ZeroDivisionError"):
        await run_fit(partial(divmod, 1, 0), time_limit=30.0)


async def test_a_job_whose_process_is_killed_says_by_what():
    with pytest.raises(FitFailed, match="ended by SIGKILL; is there enough memory"):
        await run_fit(partial(signal.raise_signal, signal.SIGKILL), time_limit=30.0)


async def test_a_job_without_a_result_that_can_be_read_has_failed():
    with pytest.raises(FitFailed, match="no result that can be read"):
        await run_fit(partial(os._exit, 0), time_limit=30.0)


async def test_a_process_that_cannot_be_started_is_a_fit_that_failed(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    with pytest.raises(FitFailed, match="could not be started"):
        await run_fit(os.getpid, time_limit=30.0)


async def test_a_job_has_one_thread_and_yields_to_others():
    assert await run_fit(partial(os.getenv, "OMP_NUM_THREADS"), time_limit=30.0) == "1"
    assert await run_fit(partial(os.nice, 0), time_limit=30.0) == min(19, os.nice(0) + 10)


async def test_jobs_take_turns_and_waiting_is_not_part_of_the_time_limit(monkeypatch):
    running = []
    most = 0

    async def counted(job, time_limit):
        nonlocal most
        running.append(job)
        most = max(most, len(running))
        await asyncio.sleep(0)
        running.remove(job)
        return job()

    monkeypatch.setattr(fit_process, "run_fit", counted)
    fits = FitProcesses()
    results = await asyncio.gather(*(fits.run(partial(abs, -n), 0.0) for n in range(5)))
    assert (results, most) == ([0, 1, 2, 3, 4], 1)


async def test_a_cancelled_job_leaves_no_process_behind():
    pids = set(_children())
    fit = asyncio.create_task(run_fit(partial(time.sleep, 600.0), time_limit=600.0))
    while not (started := set(_children()) - pids):
        await asyncio.sleep(0.01)
    fit.cancel()
    with pytest.raises(asyncio.CancelledError):
        await fit
    assert not started & set(_children())


def test_a_child_whose_parent_is_gone_ends_by_itself():
    child = subprocess.Popen(
        [sys.executable, "-m", "autoscaler.fit_process", "1"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    )
    with child:
        assert child.wait(timeout=30) == -signal.SIGALRM


def _children() -> list[int]:
    with open(f"/proc/self/task/{os.getpid()}/children") as told:  # noqa: PTH123 - a file of the kernel
        return [int(pid) for pid in told.read().split()]
