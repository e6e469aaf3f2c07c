"""Watching a running program: asks `/api/status` every second and shows what it says.

A program that does not answer any more is waited for, and the view says so.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator

import aiohttp
from rich.console import Console
from rich.live import Live
from rich.text import Text

from autoscaler.dashboard.past import SPANS
from autoscaler.dashboard.terminal import view
from autoscaler.no_answer import why_no_answer
from autoscaler.telemetry.plain import decode
from autoscaler.telemetry.status import Status

_INTERVAL = 1.0
"""Between two questions [s]."""
_TIMEOUT = aiohttp.ClientTimeout(total=5.0)
_HISTORY_MAX = int(SPANS[-1] / _INTERVAL) + 60
"""Statuses kept: the longest past that is drawn, and the forecasts that were made for its beginning."""

Answer = Status | str
"""What came of a question: a status, or in words why there is none."""


async def watch(url: str, console: Console, pool: str | None = None, note: str = "") -> None:
    """Show the program whose admin listener is at base URL `url`, until cancelled.

    Parameters
    ----------
    url : str
        Such as ``http://127.0.0.1:8082``.
    console : rich.console.Console
        The terminal.
    pool : str, optional
        The pool to show in full; the first if not given.
    note : str
        One line of words for the head of the view.
    """
    async with aiohttp.ClientSession(timeout=_TIMEOUT) as session:
        await _show_live(_answers(session, url.rstrip("/")), console, pool, note)


async def _answers(session: aiohttp.ClientSession, url: str) -> AsyncIterator[Answer]:
    """Ask again and again, evenly, whatever an answer takes."""
    loop = asyncio.get_running_loop()
    due = loop.time()
    while True:
        yield await _ask(session, url)
        due = max(due + _INTERVAL, loop.time())
        await asyncio.sleep(due - loop.time())


async def _ask(session: aiohttp.ClientSession, url: str) -> Answer:
    try:
        async with session.get(f"{url}/api/status") as response:
            body = await response.read()
            if response.status != 200:
                return f"{url} answers {response.status}: is this the admin listener of an autoscaler?"
            return decode(body, Status)
    except TimeoutError:
        return f"{url} does not answer within {_TIMEOUT.total:.0f} s; asking again"
    except aiohttp.ClientConnectorError:
        return f"nobody listens at {url}; is `autoscaler run` running? Asking again"
    except aiohttp.ClientError as error:
        return f"{url} does not answer ({why_no_answer(error)}); asking again"
    except ValueError as error:
        return f"{url} answers something else than a status ({error}): is it another version?"


async def _show_live(answers: AsyncIterator[Answer], console: Console, pool: str | None, note: str) -> None:
    history: deque[Status] = deque(maxlen=_HISTORY_MAX)
    with Live(console=console, screen=True, auto_refresh=False) as live:
        async for answer in answers:
            if isinstance(answer, Status):
                if history and answer.wall_time < history[-1].wall_time:
                    history.clear()  # the clock was set back; what was drawn has no place any more
                history.append(answer)
            trouble = answer if isinstance(answer, str) else ""
            page = view(tuple(history), pool, trouble or note) if history else Text(trouble)
            live.update(page, refresh=True)
