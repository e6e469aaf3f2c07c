"""The whole program with keys, certificates and a token, all of which are replaced while it runs."""

import asyncio
import contextlib
import ssl

import aiohttp
import yaml

from autoscaler.proxy.tenants.key import digest_of, new_key
from autoscaler.tls import ClientTls, client_context
from tests.fakes.certificates import Authority
from tests.fakes.program import Program

TOKEN = {"Authorization": "Bearer a-token-of-some-length"}


class GuardedProgram(Program):
    """The program with all of it; `keys` is its file of tenants."""

    def __init__(self, folder) -> None:
        super().__init__(folder)
        self.authority = Authority(folder)
        self.keys, token = folder / "tenants.yaml", folder / "token"
        token.write_text(TOKEN["Authorization"].removeprefix("Bearer "))
        pair = self.authority.issues("127.0.0.1", file="listener")
        files = {"certificate": str(pair.certificate), "key": str(pair.key)}
        settings = yaml.safe_load(self.config.read_text())
        settings |= {
            "tls": files,
            "tenants": {"keys_file": str(self.keys)},
            "admin_access": {"token_file": str(token), **files},
        }
        self.config.write_text(yaml.safe_dump(settings))

    def let_in(self, key: str, **limits: object) -> None:
        tenants = {"acme": {"keys": [digest_of(key)], **limits}}
        self.keys.write_text(yaml.safe_dump({"tenants": tenants}))

    def session(self) -> aiohttp.ClientSession:
        trusting = client_context(ClientTls(self.authority.file))
        return aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trusting))

    async def read(self, path: str, token: dict[str, str] = TOKEN) -> tuple[int, str]:
        async with self.session() as session:
            url = f"https://127.0.0.1:{self.admin}{path}"
            async with session.get(url, headers=token) as answer:
                return answer.status, await answer.text()

    async def ask(self, key: str) -> int:
        async with self.session() as session:
            url = f"https://127.0.0.1:{self.data}/v1/x"
            async with session.post(url, data=b"hi", headers={"X-API-Key": key}) as answer:
                await answer.read()
                return answer.status

    async def until_ready(self) -> None:
        async with asyncio.timeout(60):
            while True:
                assert self.process is not None and self.process.poll() is None, self.complaint()
                with contextlib.suppress(aiohttp.ClientError):
                    if (await self.read("/readyz", token={}))[0] == 200:
                        return
                await asyncio.sleep(0.05)

    async def serial(self) -> str:
        trusting = client_context(ClientTls(self.authority.file))
        _, writer = await asyncio.open_connection("127.0.0.1", self.data, ssl=trusting)
        certificate = writer.get_extra_info("peercert")
        writer.close()
        return certificate["serialNumber"]


async def test_keys_and_certificates_are_replaced_under_a_running_program(tmp_path):
    running, first, second = GuardedProgram(tmp_path), new_key(), new_key()
    running.let_in(first, requests="2/min")
    try:
        running.launch()
        await running.until_ready()
        assert [await running.ask(key) for key in (first, first, first, second)] == [200, 200, 429, 401]
        assert (await running.read("/metrics", token={}))[0] == 401
        status, metrics = await running.read("/metrics")
        assert status == 200
        assert 'autoscaler_tenant_requests_total{result="let_in",tenant="acme"} 2.0' in metrics
        assert 'autoscaler_tenant_requests_total{result="requests",tenant="acme"} 1.0' in metrics
        assert 'autoscaler_tenant_requests_total{result="no_key",tenant="other"} 1.0' in metrics

        shown = await running.serial()
        running.keys.write_text("tenants: [a mistake]")
        await asyncio.sleep(2.5)
        assert await running.ask(second) == 401  # and the program goes on
        running.let_in(second)
        running.authority.issues("127.0.0.1", file="listener")
        async with asyncio.timeout(20):
            while await running.ask(second) != 200 or await running.serial() == shown:
                await asyncio.sleep(0.2)
        assert await running.ask(first) == 401
        assert "changed files cannot be used" in running.complaint()
        assert await running.end() == 0
    finally:
        running.sweep()


async def test_plain_text_is_not_answered(tmp_path):
    running = GuardedProgram(tmp_path)
    running.let_in(new_key())
    try:
        running.launch()
        await running.until_ready()
        with contextlib.suppress(ssl.SSLError, ConnectionError):
            reader, writer = await asyncio.open_connection("127.0.0.1", running.data)
            writer.write(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            assert b"HTTP" not in await asyncio.wait_for(reader.read(), 10)
        assert await running.end() == 0
    finally:
        running.sweep()


async def test_a_mistake_in_the_file_of_tenants_ends_the_start_with_its_place(tmp_path):
    running = GuardedProgram(tmp_path)
    running.keys.write_text("tenants:\n  acme: {requests: many}\n")
    try:
        running.launch()
        assert await running.end(how=None) == 2
        assert "tenants.yaml:2:20  tenants.acme.requests: got" in running.complaint()
        assert running.replicas() == []
    finally:
        running.sweep()
