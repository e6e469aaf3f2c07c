"""Keys and limits, asked over both listeners: who gets in, what the others are told, what servers see."""

import asyncio
import json

import grpc
import pytest

from autoscaler.clock import SystemClock
from autoscaler.dispatch import QueueOptions
from autoscaler.dispatch.tenant_limits import TenantLimits
from autoscaler.domain import Outcome
from autoscaler.proxy.tenants.book import Tenant, TenantBook
from autoscaler.proxy.tenants.gate import TenantGate
from autoscaler.proxy.tenants.key import PREFIX, digest_of, is_digest, new_key
from autoscaler.proxy.tenants.options import TenantOptions
from tests.fakes.front import Front, front
from tests.fakes.kserve import KServe, asks_for, grpc_front
from tests.fakes.upstream import Upstream, says, says_nothing

ACME, GLOBEX = (f"{PREFIX}{letter * 43}" for letter in "AG")  # the same in every process that runs tests
BY_KEY = TenantOptions(keys_file="keys.yaml")


def book(**limits: object) -> TenantBook:
    """Acme has the limits, Globex none and another pool than the one that there is."""
    tenants = {
        "acme": Tenant("acme", TenantLimits(**limits)),
        "globex": Tenant("globex", TenantLimits(), frozenset({"elsewhere"})),
    }
    return TenantBook(
        tenants, {digest_of(ACME): "acme", digest_of(GLOBEX): "globex"}, TenantLimits(request_rate=1 / 60)
    )


def gate(options: TenantOptions = BY_KEY, **limits: object) -> TenantGate:
    return TenantGate(options, book(**limits), SystemClock())


def bearer(key: str) -> str:
    return f"Authorization: Bearer {key}"


async def leave(asked: Front, *fields: str, body: bytes = b"{}") -> None:
    """Ask, and hang up as soon as the request runs."""
    client = await asked.client()
    client.ask("/v1/x", body, *fields)
    await asked.until(busy=1)
    client.reset()
    await asked.until(busy=0)


@pytest.mark.parametrize("field", [bearer(ACME), f"X-API-Key: {ACME}", f"authorization: bearer {ACME}"])
async def test_a_key_lets_its_tenant_in_and_is_not_passed_on(field):
    async with Upstream() as server, front(server.replica(), gate=gate()) as asked:
        assert (await asked.ask("/v1/x", b"{}", field, "X-Other: 1")).status == 200
        head = (await server.got(1)).head
        assert ACME not in str(head.fields)
        assert head.get("X-Other") == "1"


async def test_a_key_is_passed_on_where_that_was_asked_for():
    options = TenantOptions(keys_file="keys.yaml", forward_keys=True)
    async with Upstream() as server, front(server.replica(), gate=gate(options)) as asked:
        await asked.ask("/v1/x", b"{}", bearer(ACME))
        assert (await server.got(1)).head.get("Authorization") == f"Bearer {ACME}"


async def test_what_is_for_the_server_is_passed_on_beside_a_key_of_ours():
    async with Upstream() as server, front(server.replica(), gate=gate()) as asked:
        await asked.ask("/v1/x", b"{}", f"X-API-Key: {ACME}", "Authorization: Basic aGk6aGk=")
        head = (await server.got(1)).head
        assert (head.get("X-API-Key"), head.get("Authorization")) == (None, "Basic aGk6aGk=")


WRONG = [
    (),
    (bearer(""),),
    (bearer(ACME[:-1]),),
    (bearer(ACME + "x"),),
    ("Authorization: Basic aGk6aGk=",),
    ("X-API-Key: ",),
]


@pytest.mark.parametrize("fields", WRONG, ids=str)
async def test_s13_without_a_key_that_is_somebodys_nobody_is_let_in(fields):
    async with Upstream() as server, front(server.replica(), gate=gate()) as asked:
        answer = await asked.ask("/v1/x", b"{}", *fields)
        assert answer.status == 401
        assert answer.head.get("WWW-Authenticate") == "Bearer"
        assert answer.json["error"]["type"] == "invalid_request_error"
        assert server.requests == []
        assert asked.facts.told == []  # what was not let in is no demand


async def test_refusals_speak_the_protocol_of_the_route():
    async with front(gate=gate()) as asked:
        assert "API key" in (await asked.ask("/v1/x")).json["error"]["message"]
        assert "API key" in (await asked.ask("/v2/models/m/infer")).json["error"]
        assert (await asked.ask("/else")).json["status"] == 401


async def test_a_tenant_whose_pool_it_is_not_is_forbidden():
    async with front(gate=gate()) as asked:
        answer = await asked.ask("/v1/x", b"{}", bearer(GLOBEX))
        assert answer.status == 403
        assert "pool" in answer.json["error"]["message"]


async def test_beyond_its_rate_a_tenant_is_told_when_to_come_back():
    async with Upstream() as server, front(server.replica(), gate=gate(request_rate=2 / 60)) as asked:
        answers = [await asked.ask("/v1/x", b"{}", bearer(ACME)) for _ in range(3)]
        assert [answer.status for answer in answers] == [200, 200, 429]
        assert 28 <= int(answers[2].head.get("Retry-After")) <= 30
        assert answers[2].json["error"]["type"] == "rate_limit_error"
        assert len(server.requests) == 2


@pytest.mark.parametrize("how", ["leaves", "is answered", "server breaks", "queue says no"])
async def test_l1_after_every_ending_the_place_is_free_again(how):
    places = gate(in_flight_max=1)

    async def breaks(wire, request):
        wire.reset()

    script = {"leaves": says_nothing, "server breaks": breaks}.get(how, says())
    async with Upstream(script) as server:
        replicas = () if how == "queue says no" else (server.replica(),)
        queue = QueueOptions(requests_max=0 if how == "queue says no" else 9)
        async with front(*replicas, gate=places, queue=queue) as asked:
            for _ in range(3):
                if how == "leaves":
                    await leave(asked, bearer(ACME))
                else:
                    wanted = {"is answered": 200, "server breaks": 502, "queue says no": 429}[how]
                    assert (await asked.ask("/v1/x", b"{}", bearer(ACME))).status == wanted
            assert places.in_flight("acme") == 0


async def test_l1_two_streams_at_a_time_are_two_and_two_that_were_aborted_are_none():
    places = gate(in_flight_max=2)

    async def streams(wire, request):
        wire.send_head("Content-Type: text/event-stream", "Transfer-Encoding: chunked")
        wire.send_chunk(b"data: {}\n\n")
        await wire.closed.wait()

    async with Upstream(streams) as server, front(server.replica(slots=3), gate=places) as asked:
        for _ in range(2):
            clients = [await asked.client() for _ in range(2)]
            for client in clients:
                client.ask("/v1/x", b"{}", bearer(ACME))
                await client.head()
                await client.event()
            assert (await asked.ask("/v1/x", b"{}", bearer(ACME))).status == 429
            for client in clients:
                client.reset()
            await asked.until(busy=0)
            assert places.in_flight("acme") == 0


async def test_tokens_are_counted_as_the_answer_says():
    usage = json.dumps({"choices": [{"text": "x" * 3000}], "usage": {"total_tokens": 601}}).encode()
    async with (
        Upstream(says(usage, "Content-Type: application/json")) as server,
        front(server.replica(), gate=gate(token_rate=10)) as asked,  # 600 a minute
    ):
        assert (await asked.ask("/v1/x", b"{}", bearer(ACME))).status == 200
        answer = await asked.ask("/v1/x", b"{}", bearer(ACME))
        assert answer.status == 429
        assert "tokens" in answer.json["error"]["message"]


async def test_tokens_of_a_stream_are_its_events_if_it_does_not_say():
    async def streams(wire, request):
        wire.send_head("Content-Type: text/event-stream", "Transfer-Encoding: chunked")
        for _ in range(620):
            wire.send_chunk(b'data: {"choices": []}\n\n')
        wire.send(b"0\r\n\r\n")

    async with Upstream(streams) as server, front(server.replica(), gate=gate(token_rate=10)) as asked:
        assert (await asked.ask("/v1/x", b"{}", bearer(ACME))).status == 200
        assert (await asked.ask("/v1/x", b"{}", bearer(ACME))).status == 429


async def test_a_trusted_header_names_the_tenant_and_unknown_names_have_the_limits_of_others():
    options = TenantOptions(header="X-Tenant")
    async with Upstream() as server, front(server.replica(), gate=gate(options)) as asked:
        statuses = [
            (await asked.ask("/v1/x", b"{}", f"X-Tenant: {name}")).status
            for name in ("a", "a", "b", "acme", "acme")
        ]
        assert statuses == [200, 429, 200, 200, 200]
        answer = await asked.ask("/v1/x", b"{}")
        assert answer.status == 401
        assert "X-Tenant" in answer.json["error"]["message"]


async def test_a_header_that_is_not_trusted_says_nothing():
    async with front(gate=gate()) as asked:
        assert (await asked.ask("/v1/x", b"{}", "X-Tenant: acme")).status == 401


async def test_where_keys_are_not_required_those_without_one_share_one_tenant():
    options = TenantOptions(keys_file="keys.yaml", required=False)
    async with Upstream() as server, front(server.replica(), gate=gate(options)) as asked:
        assert [(await asked.ask()).status for _ in range(2)] == [200, 429]
        assert (await asked.ask("/v1/x", b"{}", bearer(ACME))).status == 200
        assert (await asked.ask("/v1/x", b"{}", bearer("wrong"))).status == 401


async def test_keys_are_replaced_while_requests_run():
    door = gate()
    async with Upstream(says_nothing) as server, front(server.replica(), gate=door) as asked:
        client = await asked.client()
        client.ask("/v1/x", b"{}", bearer(ACME))
        wire = (await server.got(1), server.wires[0])[1]
        other = new_key()
        door.replace(TenantBook({"acme": Tenant("acme")}, {digest_of(other): "acme"}))
        assert (await asked.ask("/v1/x", b"{}", bearer(ACME))).status == 401
        wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        assert (await client.answer()).body == b"ok"
        server.script = says()
        assert door.in_flight("acme") == 0


async def test_e5_names_of_strangers_are_no_labels():
    door = gate(TenantOptions(header="X-Tenant", names_max=1))
    async with Upstream() as server, front(server.replica(), gate=door) as asked:
        for name in ("acme", "globex", "x1", "x2"):
            await asked.ask("/v1/x", b"{}", f"X-Tenant: {name}")
    assert door.counts.all() == {("acme", "let_in"): 1, ("other", "forbidden"): 1, ("other", "let_in"): 2}


async def test_over_grpc_the_same_keys_and_limits_hold():
    message = asks_for("embed")
    key = (("authorization", f"Bearer {ACME}"),)
    async with KServe() as server:
        limits = {"tenants": BY_KEY, "book": book(request_rate=1 / 60)}
        async with grpc_front(server.replica(), **limits) as asked:
            assert await asked.call(message, metadata=key) == message
            assert server.calls[0].all("authorization") == []
            told = []
            for metadata in (key, (), (("x-api-key", GLOBEX),)):
                call = asked.call(message, metadata=metadata)
                told.append(await call.code())
                assert "x-request-executed" in dict(await call.trailing_metadata())
            assert told == [
                grpc.StatusCode.RESOURCE_EXHAUSTED,
                grpc.StatusCode.UNAUTHENTICATED,
                grpc.StatusCode.PERMISSION_DENIED,
            ]
            assert asked.facts.outcomes == {Outcome.COMPLETED: 1}


async def test_over_grpc_questions_need_a_key_too_and_take_nothing():
    path = "/inference.GRPCInferenceService/ServerMetadata"
    async with KServe() as server:
        limits = {"tenants": BY_KEY, "book": book(request_rate=1 / 60)}
        async with grpc_front(server.replica(), **limits) as asked:
            assert await asked.call(b"", path).code() is grpc.StatusCode.UNAUTHENTICATED
            for _ in range(3):
                assert await asked.call(b"", path, metadata=(("x-api-key", ACME),)) == b""


async def test_probes_of_health_need_no_key():
    async with grpc_front(tenants=BY_KEY, book=book()) as asked:
        assert await asked.call(b"", "/grpc.health.v1.Health/Check") == b"\x08\x02"


def test_a_key_is_long_its_digest_is_one_way_and_comparison_takes_the_whole():
    keys = {new_key() for _ in range(100)}
    assert len(keys) == 100
    assert all(key.startswith("iak_") and len(key) == 47 for key in keys)
    assert is_digest(digest_of(ACME))
    assert not is_digest(ACME)
    twin = digest_of(ACME)[:-1] + ("0" if digest_of(ACME)[-1] != "0" else "1")
    assert TenantBook({"acme": Tenant("acme")}, {twin: "acme"}).by_key(ACME) is None


async def test_many_who_leave_at_random_leave_no_place_taken():
    places = gate(in_flight_max=3)

    async def slow(wire, request):
        await asyncio.sleep(0.005)
        wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    async with Upstream(slow) as server, front(server.replica(slots=2), gate=places) as asked:

        async def one(number: int) -> None:
            client = await asked.client()
            client.ask("/v1/x", b"{}", bearer(ACME))
            await asyncio.sleep(number % 7 / 1000)
            client.reset()

        for _ in range(5):
            await asyncio.gather(*(one(number) for number in range(20)))
        await asked.check_nothing_is_left()
        assert places.in_flight("acme") == 0
