"""TLS on every listener and towards the servers: who is believed, what is shown, how it is renewed."""

import asyncio
import os
import ssl

import aiohttp
import grpc
import pytest

from autoscaler.errors import UsageError
from autoscaler.model_servers.plain_http import PlainHttp
from autoscaler.ports import Replica
from autoscaler.proxy.grpc.options import GrpcOptions
from autoscaler.proxy.options import ProxyOptions, RouteOptions
from autoscaler.tls import ClientTls, ServerTls, client_context, server_context
from tests.fakes.certificates import Authority, Pair
from tests.fakes.front import front
from tests.fakes.kserve import INFER, KServe, asks_for, grpc_front
from tests.fakes.upstream import Upstream, UpstreamWire, says

REQUEST = asks_for("embed")


@pytest.fixture
def authority(tmp_path):
    return Authority(tmp_path)


def listens_with(pair: Pair, client_ca=None) -> ServerTls:
    return ServerTls(pair.certificate, pair.key, client_ca)


def trusting(authority: Authority, pair: Pair | None = None) -> ssl.SSLContext:
    shows = (None, None) if pair is None else (pair.certificate, pair.key)
    return client_context(ClientTls(authority.file, None, *shows))


async def ask(port: int, context: ssl.SSLContext, path: str = "/v1/x") -> tuple[int, bytes]:
    async with (
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)) as session,
        session.post(f"https://127.0.0.1:{port}{path}", data=b"{}") as answer,
    ):
        return answer.status, await answer.read()


class TlsUpstream(Upstream):
    """A scripted server that speaks TLS."""

    def __init__(self, tls: ServerTls, script=None) -> None:
        super().__init__(script)
        self._context = server_context(tls)
        self.asked_for: list[str | None] = []
        self._context._newest.sni_callback = lambda sock, name, context: self.asked_for.append(name)

    async def __aenter__(self):
        loop = asyncio.get_running_loop()
        made = lambda: UpstreamWire(self)  # noqa: E731
        self._listener = await loop.create_server(made, "127.0.0.1", 0, ssl=self._context)
        self.port = self._listener.sockets[0].getsockname()[1]
        return self

    def replica(self, slots: int = 1, id: str | None = None) -> Replica:
        return Replica(id or "tls", f"https://127.0.0.1:{self.port}", slots)


# -- the data listener


async def test_the_data_listener_speaks_tls(authority):
    options = ProxyOptions(port=0, tls=listens_with(authority.issues("127.0.0.1")))
    async with Upstream() as server, front(server.replica(), options=options) as asked:
        assert await ask(asked.port, trusting(authority)) == (200, b"ok")


async def test_a_large_answer_and_a_large_question_pass_through_tls(authority):
    options = ProxyOptions(port=0, tls=listens_with(authority.issues("127.0.0.1")))
    body = os.urandom(3 * 2**20)
    async with Upstream(says(body)) as server, front(server.replica(), options=options) as asked:
        context = trusting(authority)
        async with (
            aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)) as session,
            session.post(f"https://127.0.0.1:{asked.port}/v1/x", data=body) as answer,
        ):
            assert await answer.read() == body
        assert (await server.got(1)).body == body


async def test_a_client_that_leaves_is_noticed_through_tls(authority):
    options = ProxyOptions(port=0, tls=listens_with(authority.issues("127.0.0.1")))

    async def works(wire, request):
        await wire.closed.wait()

    async with Upstream(works) as server, front(server.replica(), options=options) as asked:
        task = asyncio.create_task(ask(asked.port, trusting(authority)))
        await server.got(1)
        task.cancel()
        await server.wires[0].wait_closed()
        await asked.until(busy=0)


async def test_plain_text_on_a_port_with_tls_is_hung_up_on(authority):
    options = ProxyOptions(port=0, tls=listens_with(authority.issues("127.0.0.1")))
    async with front(options=options) as asked:
        reader, writer = await asyncio.open_connection("127.0.0.1", asked.port)
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        received = await asyncio.wait_for(reader.read(), 5)
        assert b"HTTP" not in received
        writer.close()


async def test_clients_must_show_a_certificate_where_that_is_asked_for(authority, tmp_path):
    tls = listens_with(authority.issues("127.0.0.1"), client_ca=authority.file)
    mine, strangers = authority.issues("client"), Authority(tmp_path, "other").issues("client")
    async with Upstream() as server, front(server.replica(), options=ProxyOptions(port=0, tls=tls)) as asked:
        assert (await ask(asked.port, trusting(authority, mine)))[0] == 200
        for shown in (None, strangers):
            with pytest.raises((aiohttp.ClientError, ssl.SSLError, OSError)):
                await ask(asked.port, trusting(authority, shown))


async def test_a_renewed_certificate_is_shown_without_losing_who_is_connected(authority, tmp_path):
    pair = authority.issues("127.0.0.1", file="listener")
    options = ProxyOptions(port=0, tls=listens_with(pair))
    async with Upstream() as server, front(server.replica(), options=options) as asked:
        before = await _serial(asked.port, authority)
        stays = aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trusting(authority)))
        url = f"https://127.0.0.1:{asked.port}/v1/x"
        async with stays:
            async with stays.post(url, data=b"{}") as answer:
                assert answer.status == 200
            authority.issues("127.0.0.1", file="listener")
            _look(asked)
            after = await _serial(asked.port, authority)
            assert after != before
            async with stays.post(url, data=b"{}") as answer:
                assert answer.status == 200


async def test_a_renewal_that_cannot_be_used_is_not_taken(authority):
    pair = authority.issues("127.0.0.1", file="listener")
    options = ProxyOptions(port=0, tls=listens_with(pair))
    async with Upstream() as server, front(server.replica(), options=options) as asked:
        before = await _serial(asked.port, authority)
        pair.key.write_bytes(authority.issues("127.0.0.1").key.read_bytes())
        _look(asked)
        assert await _serial(asked.port, authority) == before
        authority.issues("127.0.0.1", file="listener")
        _look(asked)
        assert await _serial(asked.port, authority) != before


def _look(asked) -> None:
    for files in asked.server._certificates:  # what the reconciler does every few seconds
        files.look()


async def _serial(port: int, authority: Authority) -> str:
    """The serial number of the certificate that is shown to a new connection."""
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trusting(authority))
    certificate = writer.get_extra_info("peercert")
    writer.close()
    return certificate["serialNumber"]


# -- towards the servers


async def test_a_server_with_an_authority_of_its_own_is_believed_where_that_is_named(authority):
    route = RouteOptions(tls=ClientTls(ca=authority.file))
    async with (
        TlsUpstream(listens_with(authority.issues("127.0.0.1"))) as server,
        front(server.replica(), route=route) as asked,
    ):
        assert (await asked.ask()).status == 200


@pytest.mark.parametrize("wrong", ["authority", "name"])
async def test_a_server_that_cannot_be_believed_gets_nothing(authority, tmp_path, wrong):
    issuer = Authority(tmp_path, "other") if wrong == "authority" else authority
    name = "127.0.0.1" if wrong == "authority" else "elsewhere.test"
    route = RouteOptions(tls=ClientTls(ca=authority.file))
    async with (
        TlsUpstream(listens_with(issuer.issues(name))) as server,
        front(server.replica(), route=route, options=ProxyOptions(port=0, retries_max=0)) as asked,
    ):
        answer = await asked.ask()
        assert answer.status == 502
        assert answer.head.get("X-Request-Executed") == "no"
        assert server.requests == []


async def test_a_name_of_its_own_is_asked_for_and_checked(authority):
    route = RouteOptions(tls=ClientTls(ca=authority.file, server_name="gpu.internal"))
    async with (
        TlsUpstream(listens_with(authority.issues("gpu.internal"))) as server,
        front(server.replica(), route=route) as asked,
    ):
        assert (await asked.ask()).status == 200
        assert server.asked_for == ["gpu.internal"]
        assert (await server.got(1)).head.get("Host") == f"127.0.0.1:{server.port}"


async def test_we_show_our_certificate_to_a_server_that_asks_for_one(authority):
    ours = authority.issues("proxy")
    tls = listens_with(authority.issues("127.0.0.1"), client_ca=authority.file)
    for shown, status in ((ours, 200), (None, 502)):
        pair = (None, None) if shown is None else (shown.certificate, shown.key)
        route = RouteOptions(tls=ClientTls(authority.file, None, *pair))
        async with TlsUpstream(tls) as server:
            options = ProxyOptions(port=0, retries_max=0)
            async with front(server.replica(), route=route, options=options) as asked:
                assert (await asked.ask()).status == status


async def test_s20_a_probe_believes_whom_the_traffic_believes(authority):
    tls = listens_with(authority.issues("gpu.internal"), client_ca=authority.file)
    ours = authority.issues("proxy")
    async with TlsUpstream(tls) as server:
        url = f"https://127.0.0.1:{server.port}"
        for believed, is_ready in [
            (ClientTls(authority.file, "gpu.internal", ours.certificate, ours.key), True),
            (ClientTls(authority.file, None, ours.certificate, ours.key), False),
            (ClientTls(authority.file, "gpu.internal"), False),
            (None, False),
        ]:
            probe = PlainHttp("/healthz", 5.0, believed)
            assert await probe.ready(url) is is_ready
            await probe.close()


# -- gRPC


def _credentials(authority: Authority, pair: Pair | None = None) -> grpc.ChannelCredentials:
    shows = (None, None) if pair is None else (pair.key.read_bytes(), pair.certificate.read_bytes())
    return grpc.ssl_channel_credentials(authority.file.read_bytes(), *shows)


async def _call(port: int, credentials: grpc.ChannelCredentials) -> grpc.StatusCode:
    async with grpc.aio.secure_channel(f"127.0.0.1:{port}", credentials) as channel:
        return await channel.unary_unary(INFER)(REQUEST, timeout=5).code()


async def test_the_grpc_listener_speaks_tls_and_asks_for_certificates(authority, tmp_path):
    tls = listens_with(authority.issues("127.0.0.1"), client_ca=authority.file)
    options = GrpcOptions(port=0, tls=tls)
    strangers = Authority(tmp_path, "other").issues("client")
    async with KServe() as server, grpc_front(server.replica(), options=options) as asked:
        port = asked.server.port
        mine = _credentials(authority, authority.issues("client"))
        assert await _call(port, mine) is grpc.StatusCode.OK
        for shown in (None, strangers):
            assert await _call(port, _credentials(authority, shown)) is grpc.StatusCode.UNAVAILABLE


async def test_a_renewed_certificate_of_the_grpc_listener_is_shown_at_once(authority, tmp_path):
    pair = authority.issues("127.0.0.1", file="listener")
    other = Authority(tmp_path, "other")
    options = GrpcOptions(port=0, tls=listens_with(pair))
    async with KServe() as server, grpc_front(server.replica(), options=options) as asked:
        port = asked.server.port
        assert await _call(port, _credentials(authority)) is grpc.StatusCode.OK
        pair.key.write_bytes(b"half a key")
        assert await _call(port, _credentials(authority)) is grpc.StatusCode.OK  # the one before goes on
        other.issues("127.0.0.1", file="listener")
        assert await _call(port, _credentials(other)) is grpc.StatusCode.OK
        assert await _call(port, _credentials(authority)) is grpc.StatusCode.UNAVAILABLE


async def test_replicas_are_spoken_to_with_tls_over_grpc(authority):
    pair, ours = authority.issues("gpu.internal"), authority.issues("proxy")
    server = KServe()
    await server.listen(
        0,
        grpc.ssl_server_credentials(
            [(pair.key.read_bytes(), pair.certificate.read_bytes())], authority.file.read_bytes(), True
        ),
    )
    try:
        for tls, code in [
            (ClientTls(authority.file, "gpu.internal", ours.certificate, ours.key), grpc.StatusCode.OK),
            (ClientTls(authority.file, None, ours.certificate, ours.key), grpc.StatusCode.UNAVAILABLE),
        ]:
            options = GrpcOptions(port=0, retries_max=0)
            async with grpc_front(server.replica(), options=options, tls=tls) as asked:
                assert await asked.call(REQUEST, timeout=5).code() is code
    finally:
        await server.server.stop(0)


# -- files that cannot be used


def test_what_is_wrong_with_the_files_is_said(authority, tmp_path):
    pair, other = authority.issues("a"), authority.issues("b")
    junk = tmp_path / "junk.pem"
    junk.write_text("not a certificate")
    for tls, said in [
        (ServerTls(tmp_path / "absent.crt", pair.key), "absent.crt cannot be read: no such file"),
        (ServerTls(pair.certificate, other.key), f"{other.key} is not the key of {pair.certificate}"),
        (ServerTls(junk, pair.key), "no certificate and key in PEM form"),
        (ServerTls(pair.certificate, pair.key, junk), "junk.pem holds no certificate"),
    ]:
        with pytest.raises(UsageError, match=said.replace(".", r"\.")):
            server_context(tls)
