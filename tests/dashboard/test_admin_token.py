"""The token of the admin listener: who gets in, what stays open, and how it is replaced."""

import asyncio
import os
import time

import aiohttp
import pytest

from autoscaler.cli.admin_client import TOKEN_FILE, ask
from autoscaler.dashboard.admin import AdminSources, start_admin
from autoscaler.dashboard.admin_token import AdminToken
from autoscaler.errors import UsageError
from autoscaler.telemetry.status import Status
from autoscaler.tls import ClientTls, ServerTls, client_context, server_context
from tests.fakes.certificates import Authority

TOKEN = "correct-horse-battery-staple"
SOURCES = AdminSources(
    status=lambda: Status("0", 0.0, 0.0, 0.0, ()),
    decisions=lambda pool, limit: [],
    not_ready=list,
    metrics=lambda accept: (b"# EOF\n", "text/plain"),
)


@pytest.fixture
def token_file(tmp_path):
    path = tmp_path / "token"
    path.write_text(TOKEN + "\n")
    return path


@pytest.fixture
async def url(token_file):
    runner = await start_admin("127.0.0.1", 0, SOURCES, AdminToken(token_file))
    yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


async def status_of(url: str, authorization: str | None = None) -> int:
    headers = {} if authorization is None else {"Authorization": authorization}
    async with aiohttp.ClientSession() as session, session.get(url, headers=headers) as answer:
        return answer.status


@pytest.mark.parametrize("path", ["/", "/metrics", "/api/status", "/api/decisions", "/api/nothing"])
async def test_nothing_is_told_without_the_token(url, path):
    for given in (None, "", "Bearer", "Bearer ", f"Bearer {TOKEN}x", f"Basic {TOKEN}", TOKEN):
        assert await status_of(url + path, given) == 401
    assert await status_of(url + path, f"Bearer {TOKEN}") == (404 if path == "/api/nothing" else 200)


async def test_the_refusal_says_what_to_send(url):
    async with aiohttp.ClientSession() as session, session.get(url + "/metrics") as answer:
        assert answer.headers["WWW-Authenticate"] == "Bearer"
        assert "Authorization: Bearer" in (await answer.json())["error"]


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
async def test_probes_need_no_token(url, path):
    assert await status_of(url + path) == 200


async def test_a_token_that_was_replaced_is_no_longer_good(url, token_file):
    other = "another-token-of-some-length"
    token_file.write_text(other)
    os.utime(token_file, ns=(time.time_ns(), time.time_ns() + 10**9))
    assert await status_of(url + "/metrics", f"Bearer {TOKEN}") == 401
    assert await status_of(url + "/metrics", f"Bearer {other}") == 200


@pytest.mark.parametrize("content", ["", "short", "two words of sufficient length"])
def test_a_file_that_holds_no_token_is_told_with_a_remedy(tmp_path, content):
    path = tmp_path / "token"
    path.write_text(content)
    with pytest.raises(UsageError, match="openssl rand -hex 32"):
        AdminToken(path)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(UsageError, match="absent cannot be read: no such file"):
        AdminToken(tmp_path / "absent")


async def test_the_command_line_sends_the_token_of_a_file_that_the_environment_names(
    url, token_file, monkeypatch
):
    with pytest.raises(UsageError, match=f"asks for a token; set {TOKEN_FILE}"):
        await asyncio.to_thread(ask, url, "/api/status")
    monkeypatch.setenv(TOKEN_FILE, str(token_file))
    assert b"version" in await asyncio.to_thread(ask, url, "/api/status")


async def test_the_admin_listener_speaks_tls(tmp_path):
    authority = Authority(tmp_path)
    pair = authority.issues("127.0.0.1")
    tls = server_context(ServerTls(pair.certificate, pair.key))
    runner = await start_admin("127.0.0.1", 0, SOURCES, None, tls)
    try:
        connector = aiohttp.TCPConnector(ssl=client_context(ClientTls(authority.file)))
        url = f"https://127.0.0.1:{runner.addresses[0][1]}/healthz"
        async with aiohttp.ClientSession(connector=connector) as session, session.get(url) as answer:
            assert answer.status == 200
    finally:
        await runner.cleanup()
