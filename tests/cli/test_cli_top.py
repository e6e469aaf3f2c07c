"""`autoscaler top` gives up at once where there is nothing to watch, and waits for who may yet come."""

import asyncio
from functools import partial

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from rich.console import Console

from autoscaler.cli import top
from autoscaler.cli.top import watch_program
from autoscaler.errors import AutoscalerError, UsageError
from autoscaler.telemetry.plain import encode
from tests.telemetry.status_examples import a_pool, a_status

STATUS = encode(a_status(a_pool(name="chat"), a_pool(name="mail")))


async def watched(*answers: web.Response, pool: str | None = None) -> None:
    """Watch a server that gives these answers, each once."""
    left = iter(answers)

    async def answer(request):
        return next(left)

    application = web.Application()
    application.router.add_route("*", "/{path:.*}", answer)
    async with TestServer(application, host="127.0.0.1") as server, asyncio.timeout(20):
        await asyncio.to_thread(watch_program, f"http://127.0.0.1:{server.port}", pool)


async def test_a_listener_of_something_else_is_given_up():
    with pytest.raises(
        UsageError, match="answers 405 Method Not Allowed; name the admin listener with --url"
    ):
        await watched(web.Response(status=405))


async def test_an_answer_that_is_no_status_is_given_up():
    with pytest.raises(UsageError, match="but not as an admin listener of this program; name the"):
        await watched(web.Response(body=b'{"hello": 1}'))


async def test_a_pool_that_there_is_not_is_named_beside_those_that_there_are():
    with pytest.raises(UsageError, match=r"--pool nope: not in the program at .*; there is chat, mail"):
        await watched(web.Response(body=STATUS), pool="nope")


async def test_into_a_pipe_one_answer_is_printed_and_it_ends(capsys):
    await watched(web.Response(body=STATUS))
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[1] for line in lines] == ["chat", "mail"]
    assert "8.25/s (forecast 9.5/s)" in lines[0]
    assert len(lines[0]) > 200  # not wrapped
    await watched(web.Response(body=STATUS), pool="mail")
    assert [line.split()[1] for line in capsys.readouterr().out.splitlines()] == ["mail"]


def test_into_a_pipe_nobody_is_waited_for():
    with pytest.raises(AutoscalerError, match=r"no answer from http://127\.0\.0\.1:1 ") as caught:
        watch_program("http://127.0.0.1:1", None)
    assert not isinstance(caught.value, UsageError)  # exit code 1


async def test_on_a_terminal_who_does_not_answer_yet_is_waited_for(monkeypatch, capsys):
    monkeypatch.setattr(top, "Console", partial(Console, force_terminal=True))
    monkeypatch.setattr(top, "_ASK_AGAIN", 0.01)
    shown = []

    async def watch(url, console, pool):
        shown.append(pool)

    monkeypatch.setattr(top, "watch", watch)
    await watched(web.Response(status=502), web.Response(status=502), web.Response(body=STATUS), pool="mail")
    assert shown == ["mail"]
    assert capsys.readouterr().err.count("Asking again") == 1


async def test_who_speaks_no_http_is_given_up():
    async def greets(reader, writer):
        writer.write(b"220 at your service\r\n")
        writer.close()

    server = await asyncio.start_server(greets, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(UsageError, match="does not speak HTTP"):
            await asyncio.to_thread(watch_program, f"http://127.0.0.1:{port}", None)
