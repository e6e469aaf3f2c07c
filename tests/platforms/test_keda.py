"""KEDA's questions, asked over gRPC as KEDA and the HPA ask them."""

import asyncio
import contextlib
from pathlib import Path

import grpc
import pytest
import yaml

from autoscaler.clock import VirtualClock
from autoscaler.domain import Request
from autoscaler.errors import PlatformUnavailable, UsageError
from autoscaler.platforms.keda import Keda, KedaOptions, KedaServer, KedaServerOptions, server
from autoscaler.platforms.keda.server import METRIC
from autoscaler.remote_fleet import RemoteFleetOptions
from autoscaler.tls import ServerTls
from tests.fakes.certificates import Authority
from tests.fakes.keda import Hpa, KedaClient, scaled_object
from tests.fakes.listed_servers import ScriptedServers
from tests.fakes.replica_listener import FakeReplicaListener

A = "http://127.0.0.1:9001"
CHAT, EMBED = scaled_object("chat", pool="chat"), scaled_object("embed", pool="embed")
SCALED_OBJECT = Path(__file__).parents[2] / "deploy" / "keda" / "scaledobject.yaml"


class Asked:
    """Two pools, their server, and a client."""

    def __init__(self, folder):
        self.clock = VirtualClock()
        self.pools = {
            name: Keda(
                KedaOptions(name, RemoteFleetOptions(state_dir=folder / name, urls=(A,))),
                ScriptedServers(A),
                self.clock,
            )
            for name in ("chat", "embed")
        }
        self.chat = self.pools["chat"]
        self.server = KedaServer(KedaServerOptions(port=0), self.pools)


@pytest.fixture
async def asked(tmp_path):
    asked = Asked(tmp_path)
    for pool in asked.pools.values():
        await pool.start(FakeReplicaListener())
    await asked.server.start()
    async with KedaClient(asked.server.port) as asked.client:
        yield asked
        await asked.server.stop()
    for pool in asked.pools.values():
        await pool.stop()


def request():
    return Request("r1", arrived_at=0.0, deadline=60.0)


async def test_the_metric_is_the_number_that_is_wanted_against_a_target_of_one(asked):
    assert await asked.client.metric_spec(CHAT) == (METRIC, 1, 1.0)
    for wish in (3, 1, 12, 0):
        await asked.chat.scale_to(wish)
        assert await asked.client.metric(CHAT, METRIC) == wish
        assert await asked.client.is_active(CHAT) == (wish > 0)


async def test_several_scaled_objects_ask_one_server(asked):
    await asked.pools["chat"].scale_to(2)
    await asked.pools["embed"].scale_to(7)
    assert await asked.client.metric(CHAT, METRIC) == 2
    assert await asked.client.metric(EMBED, METRIC) == 7


async def code_of(call):
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        await call
    return failure.value.code(), failure.value.details()


async def test_before_the_first_wish_there_is_no_answer_so_the_fleet_stays(asked):
    for call in (asked.client.is_active(CHAT), asked.client.metric(CHAT, METRIC)):
        code, details = await code_of(call)
        assert code is grpc.StatusCode.UNAVAILABLE
        assert "no decision has been taken here" in details
    assert await asked.client.metric_spec(CHAT) == (METRIC, 1, 1.0)  # KEDA makes its HPA all the same


async def test_who_asks_for_what_is_not_there_is_told_what_is(asked):
    code, details = await code_of(asked.client.is_active(scaled_object("x", pool="caht")))
    assert (code, "to one of chat, embed" in details) == (grpc.StatusCode.NOT_FOUND, True)
    code, details = await code_of(asked.client.is_active(scaled_object("x")))
    assert (code, "default/x names no pool" in details) == (grpc.StatusCode.NOT_FOUND, True)
    code, details = await code_of(asked.client.metric(CHAT, "cpu"))
    assert (code, METRIC in details) == (grpc.StatusCode.NOT_FOUND, True)
    code, _ = await code_of(asked.client.stream_metric_spec(CHAT))
    assert code is grpc.StatusCode.UNIMPLEMENTED  # optional; KEDA then asks GetMetricSpec


async def test_one_pool_needs_no_name(tmp_path):
    asked = Asked(tmp_path)
    server = KedaServer(KedaServerOptions(port=0), {"chat": asked.chat})
    await server.start()
    async with KedaClient(server.port) as client:
        assert await client.metric_spec(scaled_object("x")) == (METRIC, 1, 1.0)
    await server.stop()


async def test_the_first_request_at_zero_is_pushed_at_once_and_only_once(asked):
    await asked.chat.scale_to(0)
    stream = asked.client.stream_is_active(CHAT)
    assert KedaClient.read_active(await stream.read()) is False
    for _ in range(5):
        asked.chat.arrived(request(), now=0.0)
    assert KedaClient.read_active(await asyncio.wait_for(stream.read(), 5)) is True
    assert await asked.client.is_active(CHAT)
    assert await asked.client.metric(CHAT, METRIC) == 1
    await asked.chat.scale_to(4)
    await asked.chat.scale_to(0)
    assert KedaClient.read_active(await asyncio.wait_for(stream.read(), 5)) is False
    stream.cancel()


async def test_a_decision_that_was_taken_before_the_request_came_does_not_put_the_pool_back_to_sleep(asked):
    await asked.chat.scale_to(0)
    asked.chat.arrived(request(), now=0.0)
    await asked.chat.scale_to(0)
    assert asked.chat.desired == 1
    await asked.chat.scale_to(0)  # this one knew, and the request was refused
    assert asked.chat.desired == 0


async def test_a_request_wakes_nobody_in_recommend_mode(asked):
    asked.chat.arrived(request(), now=0.0)
    assert asked.chat.desired is None


async def test_a_stream_says_nothing_until_something_is_known_and_is_forgotten_when_it_ends(asked):
    stream = asked.client.stream_is_active(CHAT)
    reading = asyncio.ensure_future(stream.read())
    async with asyncio.timeout(5):
        while not asked.chat._watchers:
            await asyncio.sleep(0.001)
    await asyncio.sleep(0.02)
    assert not reading.done()
    await asked.chat.scale_to(2)
    assert KedaClient.read_active(await reading) is True
    stream.cancel()
    async with asyncio.timeout(5):
        while asked.chat._watchers:
            await asyncio.sleep(0.001)


async def test_who_stands_by_answers_nothing_and_ends_its_streams(asked):
    await asked.chat.scale_to(3)
    stream = asked.client.stream_is_active(CHAT)
    await stream.read()
    asked.chat.stand_by()
    for answer in (stream.read(), asked.client.metric(CHAT, METRIC), asked.client.is_active(CHAT)):
        with pytest.raises(grpc.aio.AioRpcError) as refusal:
            await asyncio.wait_for(answer, 5)
        assert refusal.value.code() is grpc.StatusCode.UNAVAILABLE
    assert not asked.chat._watchers
    await asked.chat.scale_to(3)
    assert await asked.client.metric(CHAT, METRIC) == 3


async def test_who_does_not_act_any_more_answers_nothing_even_if_nobody_has_told_it(asked):
    acts = [True]
    asked.chat.act_while(lambda: acts[-1])
    await asked.chat.scale_to(3)
    acts.append(False)  # as after the program has stood still, while another came to lead
    for call in (asked.client.is_active(CHAT), asked.client.metric(CHAT, METRIC)):
        code, _ = await code_of(call)
        assert code is grpc.StatusCode.UNAVAILABLE
    acts.append(True)
    assert await asked.client.metric(CHAT, METRIC) == 3


async def test_keda_is_asked_to_connect_anew_now_and_then_and_loses_nothing(asked, monkeypatch):
    monkeypatch.setattr(server, "_CONNECTION_AGE", 0.1)
    peers, pool_of = set(), KedaServer._pool

    async def noted(self, ref, context):
        peers.add(context.peer())
        return await pool_of(self, ref, context)

    monkeypatch.setattr(KedaServer, "_pool", noted)
    ageing = KedaServer(KedaServerOptions(port=0), asked.pools)
    await ageing.start()
    await asked.chat.scale_to(0)
    async with KedaClient(ageing.port) as client:
        stream = client.stream_is_active(CHAT)
        assert KedaClient.read_active(await stream.read()) is False
        async with asyncio.timeout(20):
            while len(peers) < 3:
                assert await client.metric(CHAT, METRIC) == 0
        asked.chat.arrived(request(), now=0.0)
        assert KedaClient.read_active(await asyncio.wait_for(stream.read(), 5)) is True
    await ageing.stop()


async def test_a_client_that_does_not_read_its_stream_holds_up_nobody(asked):
    await asked.chat.scale_to(1)
    stalled, other = asked.client.stream_is_active(CHAT), asked.client.stream_is_active(CHAT)
    assert KedaClient.read_active(await other.read()) is True
    for number in range(2_000):
        await asked.chat.scale_to(number % 2)
        await asyncio.sleep(0)
    assert await asyncio.wait_for(asked.client.metric(CHAT, METRIC), 5) == 1
    stalled.cancel()


async def test_a_server_that_stops_ends_its_streams(asked):
    await asked.chat.scale_to(1)
    stream = asked.client.stream_is_active(CHAT)
    await stream.read()
    async with asyncio.timeout(1.5):  # not the grace that answers under way are given
        await asked.server.stop()
    with contextlib.suppress(grpc.aio.AioRpcError):
        assert await stream.read() is grpc.aio.EOF


async def polled(asked, hpa, wishes, current):
    """Poll as the HPA does, every 15 s of a day in fast motion; return the fleet after each poll."""
    sizes = []
    for number, wish in enumerate(wishes):
        await asked.chat.scale_to(wish)
        value = await asked.client.metric(CHAT, METRIC)
        current = hpa.replicas(current, value, target=1.0, now=15.0 * number)
        sizes.append(current)
    return sizes


def behavior():
    scaled = yaml.safe_load(SCALED_OBJECT.read_text())
    return scaled["spec"]["advanced"]["horizontalPodAutoscalerConfig"]["behavior"]


async def test_under_the_scaled_object_that_ships_the_hpa_follows_the_decision_poll_by_poll(asked):
    wishes = [1, 2, 5, 9, 7, 8, 8, 6, 3, 4, 4, 2, 1, 1, 7, 9, 1]
    assert await polled(asked, Hpa(behavior(), 1, 20), wishes, current=1) == wishes


async def test_without_it_the_hpa_would_hold_every_peak_for_five_minutes(asked):
    rules = behavior()
    rules["scaleDown"]["stabilizationWindowSeconds"] = 300
    assert await polled(asked, Hpa(rules, 1, 20), [1, 9, 2, 2], current=1) == [1, 9, 9, 9]


async def test_a_large_fleet_follows_to_within_the_hpas_tolerance_unless_that_is_set_to_zero(asked):
    wishes = [20, 21, 22, 23, 24, 22, 20]
    exact = await polled(asked, Hpa(behavior(), 1, 30, tolerance=0.0), wishes, current=20)
    coarse = await polled(asked, Hpa(behavior(), 1, 30, tolerance=0.1), wishes, current=20)
    assert exact == wishes
    assert coarse != wishes
    assert all(abs(size - wish) <= 0.1 * size for size, wish in zip(coarse, wishes, strict=True))


async def test_the_fleet_counts_what_was_asked_for_as_starting(asked):
    await asked.chat.scale_to(3)
    fleet = await asked.chat.fleet()
    assert (fleet.ready, fleet.starting) == (1, 2)


async def test_it_cannot_be_asked_before_start_and_after_stop(tmp_path):
    keda = Asked(tmp_path).chat
    with pytest.raises(PlatformUnavailable):
        await keda.scale_to(1)
    await keda.start(FakeReplicaListener())
    await keda.scale_to(1)
    await keda.stop()
    assert keda.desired is None
    with pytest.raises(PlatformUnavailable):
        await keda.scale_to(1)


async def test_a_port_that_is_taken_is_told(asked):
    other = KedaServer(KedaServerOptions(port=asked.server.port), asked.pools)
    with pytest.raises(UsageError, match="cannot listen for KEDA"):
        await other.start()


async def test_answers_can_be_encrypted(tmp_path, asked):
    authority = Authority(tmp_path)
    pair = authority.issues("localhost")
    server = KedaServer(KedaServerOptions(port=0, tls=ServerTls(pair.certificate, pair.key)), asked.pools)
    await server.start()
    credentials = grpc.ssl_channel_credentials(authority.file.read_bytes())
    async with KedaClient(server.port, credentials) as client:
        assert await client.metric_spec(CHAT) == (METRIC, 1, 1.0)
    await server.stop()


def test_a_pool_whose_replicas_nobody_lists_is_refused(tmp_path):
    with pytest.raises(ValueError, match="nothing says where the replicas are"):
        KedaOptions("chat", RemoteFleetOptions(state_dir=tmp_path))
