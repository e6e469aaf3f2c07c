"""Watching a running program over its admin listener."""

import asyncio
import contextlib
import io

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from rich.console import Console

from autoscaler.dashboard import watch as watch_module
from autoscaler.dashboard.watch import watch
from autoscaler.telemetry.plain import encode
from tests.telemetry.status_examples import WALL_TIME, a_status


class Program:
    """Answers /api/status; the statuses it is given first, then whatever it is told to."""

    def __init__(self):
        self.asked = 0
        self.answer = lambda second: web.Response(body=encode(a_status(wall_time=WALL_TIME + second)))

    async def status(self, request):
        self.asked += 1
        return self.answer(self.asked)


@pytest.fixture
def program():
    return Program()


@pytest.fixture
async def url(program, monkeypatch):
    monkeypatch.setattr(watch_module, "_INTERVAL", 0.01)
    application = web.Application()
    application.router.add_get("/api/status", program.status)
    async with TestServer(application, host="127.0.0.1") as server:
        yield f"http://127.0.0.1:{server.port}"


async def shown(url, *, until):
    """Watch until `until` is on the console, and return all that is on it."""
    console = Console(file=io.StringIO(), force_terminal=True, width=80, height=24, color_system=None)
    watching = asyncio.create_task(watch(url, console))
    async with asyncio.timeout(10):
        while until not in console.file.getvalue():
            await asyncio.sleep(0.01)
    watching.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await watching
    return console.file.getvalue()


async def test_on_a_terminal_the_page_is_live_and_the_screen_is_given_back(url, program):
    text = await shown(url, until="4 of 6 ready, 2 starting")
    assert text.startswith("\x1b[?1049h")
    assert "\x1b[?1049l" in text.split("4 of 6 ready")[-1]


async def test_trouble_is_told_and_the_last_page_stays(url, program):
    good = program.answer
    program.answer = lambda second: good(second) if second < 3 else web.Response(status=502)
    text = await shown(url, until="answers 502")
    assert "4 of 6 ready, 2 starting" in text.split("answers 502")[-1]


async def test_a_program_that_is_not_there_is_waited_for():
    text = await shown("http://127.0.0.1:9", until="nobody listens")
    assert "at http://127.0.0.1:9; is `autoscaler run` running?" in " ".join(text.split())


async def test_an_answer_that_is_no_status_is_told(url, program):
    program.answer = lambda second: web.Response(body=b'{"hello": 1}')
    assert url in await shown(url, until="answers something else than a status")
