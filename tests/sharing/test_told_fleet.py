"""A proxy that is told its replicas: it uses its share of those that answer, and loses nothing that runs."""

import asyncio

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from autoscaler.clock import SystemClock
from autoscaler.dispatch import Dispatcher, QueueOptions
from autoscaler.ports import Replica
from autoscaler.proxy.drive import PoolDrive
from autoscaler.sharing.message import ReplicaHeld, ReplicaTold, SharesTold, read_held
from autoscaler.sharing.routes import shares_routes
from autoscaler.sharing.told_fleet import ToldFleet, ToldOptions
from tests.fakes.replica_listener import FakeReplicaListener


class Servers:
    """Model servers, of which some answer."""

    def __init__(self):
        self.away: set[str] = set()

    async def ready(self, url: str) -> bool:
        return url not in self.away

    async def slots(self, url: str) -> int | None:
        return None


class Path(FakeReplicaListener):
    """A request path, of which the test says what else it tells."""

    def __init__(self):
        super().__init__()
        self.waiting, self.closing, self.ejected = 0, False, set()


class Proxy:
    """A fleet that is told, and the request path behind it."""

    def __init__(self):
        self.path, self.servers = Path(), Servers()
        options = ToldOptions(probe_interval=0.01, probe_failures=2)
        self.fleet = ToldFleet(options, self.servers, SystemClock(), self.path)

    async def tell(self, **shares: int) -> None:
        replicas = {name: ReplicaTold(f"http://{name}:8000", share) for name, share in shares.items()}
        self.fleet.tell(SharesTold(replicas))
        await asyncio.sleep(0.02)  # for a probe

    def offered(self) -> dict[str, int]:
        return {name: replica.slots for name, replica in self.path.ready.items()}


@pytest.fixture
async def proxy():
    proxy = Proxy()
    await proxy.fleet.start(proxy.path)
    yield proxy
    await proxy.fleet.stop()


class TestReplicas:
    async def test_before_the_first_word_there_is_none(self, proxy):
        assert proxy.fleet.told is None
        assert not proxy.fleet.held().is_told

    async def test_each_is_offered_with_its_share(self, proxy):
        await proxy.tell(a=3, b=1)
        assert proxy.offered() == {"a": 3, "b": 1}

    async def test_one_that_does_not_answer_is_not_offered(self, proxy):
        proxy.servers.away = {"http://b:8000"}
        await proxy.tell(a=3, b=1)
        assert proxy.offered() == {"a": 3}
        assert [each.is_ready for each in proxy.fleet.held().replicas.values()] == [True, False]
        proxy.servers.away.clear()
        await proxy.path.until(lambda: proxy.offered() == {"a": 3, "b": 1})

    async def test_a_share_follows_what_is_told(self, proxy):
        await proxy.tell(a=3)
        await proxy.tell(a=5)
        assert proxy.offered() == {"a": 5}

    async def test_without_a_share_it_is_ready_all_the_same(self, proxy):
        for share in (0, 3, 0, 2):
            await proxy.tell(a=share)
            assert proxy.offered() == {"a": share}
            assert proxy.fleet.held().replicas["a"].is_ready
        assert proxy.path.calls == [("ready", "a")] * 4

    async def test_one_that_is_ejected_does_not_answer(self, proxy):
        await proxy.tell(a=3, b=1)
        proxy.path.ejected = {"a"}
        assert [each.is_ready for each in proxy.fleet.held().replicas.values()] == [False, True]

    async def test_what_runs_on_one_that_is_gone_is_told(self, proxy):
        await proxy.tell(a=3, b=1)
        proxy.path.busy = {"a": 2, "b": 1, "c": 0}
        await proxy.tell(b=1)
        assert proxy.fleet.held().gone == {"a": 2}

    async def test_one_that_is_not_listed_any_more_is_lost(self, proxy):
        await proxy.tell(a=3, b=1)
        await proxy.tell(b=1)
        assert proxy.path.calls[-1] == ("lost", "a")

    async def test_its_grpc_port_is_passed_on(self, proxy):
        proxy.fleet.tell(SharesTold({"a": ReplicaTold("http://a:8000/", 2, "a:8001")}))
        await proxy.path.until(lambda: "a" in proxy.path.ready)
        assert proxy.path.ready["a"] == Replica("a", "http://a:8000", 2, "a:8001")
        assert proxy.fleet.held().replicas["a"].grpc_target == "a:8001"

    async def test_silence_changes_nothing(self, proxy):
        await proxy.tell(a=3)
        before = list(proxy.path.calls)
        await asyncio.sleep(0.1)
        assert proxy.path.calls == before

    async def test_it_says_what_it_uses_and_who_waits(self, proxy):
        await proxy.tell(a=3)
        proxy.path.busy, proxy.path.waiting, proxy.path.closing = {"a": 4}, 7, True
        held = proxy.fleet.held()
        assert (held.waiting, held.is_leaving, held.is_told) == (7, True, True)
        assert held.replicas == {"a": ReplicaHeld("http://a:8000", 3, 4, True)}


async def test_where_it_has_no_slot_a_replica_can_be_asked_what_takes_none():
    drive = PoolDrive("chat", Dispatcher(QueueOptions()), SystemClock())
    fleet = ToldFleet(ToldOptions(), Servers(), SystemClock(), drive)
    await fleet.start(drive)
    fleet.tell(SharesTold({"a": ReplicaTold("http://a:8000", 0)}))
    await asyncio.sleep(0.02)
    assert [each.id for each in drive.ready_replicas()] == ["a"]
    assert drive.snapshot().slots == 0
    drive.close()
    assert fleet.held().is_leaving
    await fleet.stop()


class TestWhetherItIsReady:
    async def test_not_before_the_first_word(self, proxy):
        assert proxy.fleet.trouble == "no controller has told its replicas yet"

    async def test_it_is_with_a_replica_that_answers_even_without_a_share_now(self, proxy):
        await proxy.tell(a=0)
        assert proxy.fleet.trouble is None

    async def test_not_while_none_answers(self, proxy):
        proxy.servers.away = {"http://a:8000", "http://b:8000"}
        await proxy.tell(a=1, b=1)
        assert proxy.fleet.trouble == "none of its 2 replicas answers"

    async def test_at_zero_requests_wait_for_the_first_replica(self, proxy):
        await proxy.tell()
        assert proxy.fleet.trouble is None


class TestOnTheWire:
    @pytest.fixture
    async def client(self, proxy):
        application = web.Application()
        application.add_routes(shares_routes({"chat": proxy.fleet}))
        async with TestClient(TestServer(application, host="127.0.0.1")) as client:
            yield client

    async def put(self, client, body, tag, pool="chat"):
        headers = {} if tag is None else {"If-Match": tag}
        answer = await client.put(f"/api/shares/{pool}", data=body, headers=headers)
        return answer.status, await answer.read(), answer.headers.get("ETag")

    async def test_an_order_is_taken_in_once(self, client, proxy):
        tag = (await client.get("/api/shares/chat")).headers["ETag"]
        body = b'{"replicas": {"a": {"url": "http://a:8000", "share": 2}}}'
        status, raw, new_tag = await self.put(client, body, tag)
        assert (status, read_held(raw).replicas["a"].share) == (200, 2)
        status, raw, tag_after = await self.put(client, b'{"replicas": {}}', tag)  # late, or again
        assert (status, read_held(raw).replicas["a"].share, tag_after) == (412, 2, new_tag)

    async def test_reading_changes_nothing(self, client, proxy):
        first, second = [(await client.get("/api/shares/chat")).headers["ETag"] for _ in range(2)]
        assert first == second
        assert proxy.fleet.told is None

    @pytest.mark.parametrize(
        ("body", "words"),
        [
            (b"{", "not JSON"),
            (b'{"replicas": {"a": {"url": "http://a:8000", "share": -1}}}', "got -1"),
            (
                b'{"replicas": {"a": {"url": "http://a:8000", "share": 9999999}}}',
                "need 0 <= share <= 1000000",
            ),
            (b"[" * 100_000, "not JSON"),
            (b'{"replicas": {"a": {"share": 1}}}', "url"),
            (b'{"replicas": {"a": {"url": "nowhere", "share": 1}}}', "'nowhere' is no base URL"),
            (b"[]", "array"),
        ],
    )
    async def test_nonsense_is_refused_with_a_reason_and_changes_nothing(self, client, proxy, body, words):
        tag = (await client.get("/api/shares/chat")).headers["ETag"]
        status, raw, _ = await self.put(client, body, tag)
        assert status == 400
        assert words in raw.decode()
        assert proxy.fleet.told is None

    async def test_an_order_must_name_the_state_that_it_is_for(self, client):
        status, raw, _ = await self.put(client, b'{"replicas": {}}', None)
        assert (status, b"If-Match" in raw) == (400, True)

    async def test_another_pool_is_not_known(self, client):
        status, raw, _ = await self.put(client, b'{"replicas": {}}', '"x"', pool="other")
        assert (status, b"there is chat" in raw) == (404, True)
