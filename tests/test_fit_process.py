"""Fits run in another process, with a time limit."""

import os
import time
from functools import partial

import pytest

from autoscaler.fit_process import FitFailed, run_fit


async def test_a_job_runs_in_another_process_and_its_result_comes_back():
    assert await run_fit(os.getpid, time_limit=30.0) != os.getpid()


async def test_what_a_job_prints_does_not_spoil_the_result():
    assert await run_fit(partial(print, "noise"), time_limit=30.0) is None


async def test_a_job_that_takes_too_long_is_ended():
    with pytest.raises(FitFailed, match=r"longer than 0\.2 s"):
        await run_fit(partial(time.sleep, 600.0), time_limit=0.2)


async def test_a_job_that_breaks_says_why():
    with pytest.raises(FitFailed, match="ZeroDivisionError"):
        await run_fit(partial(divmod, 1, 0), time_limit=30.0)
