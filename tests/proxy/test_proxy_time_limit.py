"""A limit of time: what `asyncio.timeout` promises, for less."""

import asyncio

import pytest

from autoscaler.proxy.time_limit import TimeLimit


async def test_what_takes_too_long_ends_with_timeout_error():
    with pytest.raises(TimeoutError), TimeLimit(0.01):
        await asyncio.Event().wait()
    await asyncio.sleep(0)  # the task goes on, and is not taken for cancelled
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_what_is_done_in_time_or_has_no_limit_is_left_alone():
    with TimeLimit(0.02):
        await asyncio.sleep(0)
    with TimeLimit(None):
        await asyncio.sleep(0)
    await asyncio.sleep(0.04)


async def test_who_is_cancelled_from_outside_is_cancelled():
    async def limited() -> None:
        with TimeLimit(60.0):
            await asyncio.Event().wait()

    task = asyncio.create_task(limited())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_the_outer_of_two_limits_is_told_from_the_inner():
    with pytest.raises(TimeoutError), TimeLimit(0.01), TimeLimit(60.0):
        await asyncio.Event().wait()
    with TimeLimit(60.0):
        with pytest.raises(TimeoutError), TimeLimit(0.01):
            await asyncio.Event().wait()
        await asyncio.sleep(0)


async def test_an_error_within_it_is_that_error():
    with pytest.raises(KeyError), TimeLimit(0.01):
        raise KeyError
