"""The admin listener, asked over loopback."""

import asyncio
import logging

import pytest
from aiohttp.test_utils import TestClient, TestServer

from autoscaler.dashboard.admin import AdminSources, admin_application, start_admin
from autoscaler.domain import Binding, Fleet, Hold, Reason
from autoscaler.errors import PortTaken, UsageError
from autoscaler.telemetry.decision_codec import DecisionRecord, record_from_plain
from autoscaler.telemetry.exposition import Metrics
from autoscaler.telemetry.live_request import LiveRequest
from autoscaler.telemetry.plain import decode
from autoscaler.telemetry.status import ForecastStatus, Status
from tests.telemetry.status_examples import a_pool, a_status

STATUS = a_status(a_pool(forecast=ForecastStatus(mean=9.5)), a_pool(name="embed"))
KEPT = [
    DecisionRecord(
        pool, 100.0 * step, step, None, Fleet(1, 0, 0, 1, 5.0, 9.0), Hold(step, Reason.IDLE, Binding.BAND)
    )
    for step, pool in enumerate(["chat", "embed", "chat"])
]


class Program:
    """What the admin listener looks at."""

    def __init__(self):
        self.reasons = []
        self.history_error = None
        self.live = []

    def decisions(self, pool, limit):
        if self.history_error:
            raise self.history_error
        return [record for record in KEPT if pool in (None, record.pool)][-limit:]

    def sources(self):
        return AdminSources(
            status=lambda: STATUS,
            decisions=self.decisions,
            not_ready=lambda: self.reasons,
            metrics=Metrics(("chat", "embed"), lambda: STATUS).render,
            requests=lambda: self.live,
        )


@pytest.fixture
def program():
    return Program()


@pytest.fixture
async def client(program):
    async with TestClient(TestServer(admin_application(program.sources()), host="127.0.0.1")) as client:
        yield client


async def test_the_index_names_every_endpoint(client):
    text = await (await client.get("/")).text()
    for path in ["/metrics", "/healthz", "/readyz", "/api/status", "/api/decisions", "/api/requests"]:
        assert path in text
        assert (await client.get(path)).status == 200


async def test_the_status_arrives_whole(client):
    response = await client.get("/api/status")
    assert response.content_type == "application/json"
    body = await response.read()
    assert b'"p10":null' in body
    received = decode(body, Status)
    assert repr(received) == repr(STATUS)  # NaN differs from itself, its text does not


async def test_not_ready_is_503_with_the_reasons(client, program):
    assert await (await client.get("/readyz")).json() == {"ready": True, "reasons": []}
    program.reasons = ["pool chat: no replica is ready"]
    response = await client.get("/readyz")
    assert response.status == 503
    assert await response.json() == {"ready": False, "reasons": ["pool chat: no replica is ready"]}
    assert (await client.get("/healthz")).status == 200


async def test_decisions_arrive_whole_and_with_their_sentence(client):
    decisions = (await (await client.get("/api/decisions")).json())["decisions"]
    assert decisions[0]["sentence"] == str(KEPT[0].decision)
    assert [repr(record_from_plain(plain)) for plain in decisions] == [repr(record) for record in KEPT]


@pytest.mark.parametrize(
    ("query", "desired"), [("?pool=chat", [0, 2]), ("?limit=1", [2]), ("?pool=chat&limit=1", [2])]
)
async def test_decisions_are_chosen_by_pool_and_number(client, query, desired):
    decisions = (await (await client.get("/api/decisions" + query)).json())["decisions"]
    assert [record["decision"]["desired"] for record in decisions] == desired


@pytest.mark.parametrize(
    ("path", "status", "complaint"),
    [
        ("/api/decisions?limit=many", 400, "limit: a number from 1 to 1000, got 'many'"),
        ("/api/decisions?limit=0", 400, "got '0'"),
        ("/api/decisions?limit=1001", 400, "got '1001'"),
        ("/api/decisions?pool=nobody", 404, "no pool 'nobody'; there is chat, embed"),
        ("/api/nothing", 404, "Not Found"),
    ],
)
async def test_a_wrong_question_is_answered_in_json(client, path, status, complaint):
    response = await client.get(path)
    assert response.status == status
    assert complaint in (await response.json())["error"]


async def test_nothing_can_be_changed(client):
    response = await client.post("/api/status")
    assert response.status == 405
    assert "GET" in response.headers["Allow"]


async def test_a_history_that_cannot_be_read_is_told(client, program):
    program.history_error = UsageError("history h.sqlite: damaged")
    response = await client.get("/api/decisions")
    assert response.status == 500
    assert await response.json() == {"error": "history h.sqlite: damaged"}


async def test_metrics_follow_the_accept_header(client):
    plain = await client.get("/metrics")
    assert plain.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    assert 'autoscaler_queue_depth{pool="chat"} 3.0' in await plain.text()
    accept = {"Accept": "application/openmetrics-text; version=1.0.0"}
    openmetrics = await client.get("/metrics", headers=accept)
    assert openmetrics.content_type == "application/openmetrics-text"
    assert (await openmetrics.text()).endswith("# EOF\n")


async def test_a_taken_port_is_named_with_a_remedy(program):
    first = await start_admin("127.0.0.1", 0, program.sources())
    port = first.addresses[0][1]
    try:
        with pytest.raises(PortTaken, match=f"127.0.0.1:{port}: in use .* choose another port"):
            await start_admin("127.0.0.1", port, program.sources())
    finally:
        await first.cleanup()


async def test_what_is_no_http_is_refused_with_one_line_for_the_curious(program, caplog):
    caplog.set_level(logging.DEBUG, logger="autoscaler.admin")
    admin = await start_admin("127.0.0.1", 0, program.sources())
    try:
        for head in (b"GET / HTTP/1.1\r\nHost: a\r\nbad header\r\n\r\n", b"\x16\x03\x01 TLS?\r\n\r\n"):
            caplog.clear()
            reader, writer = await asyncio.open_connection(*admin.addresses[0][:2])
            writer.write(head)
            assert (await reader.readline()).split()[1] == b"400"
            writer.close()
            assert [(line.levelname, line.exc_info) for line in caplog.records] == [("DEBUG", None)]
            assert "not valid HTTP" in caplog.text
    finally:
        await admin.cleanup()


async def test_a_fault_of_its_own_is_told_with_its_trace(program, caplog):
    program.history_error = RuntimeError("a fault of ours")
    admin = await start_admin("127.0.0.1", 0, program.sources())
    try:
        reader, writer = await asyncio.open_connection(*admin.addresses[0][:2])
        writer.write(b"GET /api/decisions HTTP/1.1\r\nHost: a\r\n\r\n")
        assert (await reader.readline()).split()[1] == b"500"
        writer.close()
    finally:
        await admin.cleanup()
    assert "a fault of ours" in caplog.text


async def test_the_requests_in_flight_are_listed_the_oldest_first_and_no_more_than_asked_for(client, program):
    program.live = [
        LiveRequest("a", "POST", "/v1/x", "calling", 2.5, "chat", "standard", "acme", "r1"),
        LiveRequest("b", "GET", "/v1/y", "reading", 0.5),
    ]
    told = await (await client.get("/api/requests?limit=1")).json()
    assert told["in_flight"] == 2
    assert told["requests"] == [
        {
            "id": "a",
            "method": "POST",
            "path": "/v1/x",
            "state": "calling",
            "age": 2.5,
            "pool": "chat",
            "priority_class": "standard",
            "tenant": "acme",
            "replica": "r1",
        }
    ]
