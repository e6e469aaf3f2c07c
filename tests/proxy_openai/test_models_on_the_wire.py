"""The model of a body chooses the pool, and one list tells the models of all."""

import json

import pytest

from autoscaler.clock import SystemClock
from autoscaler.proxy.options import ProxyOptions
from autoscaler.proxy.server import PoolRoute, ProxyServer
from autoscaler.proxy.tenants.book import Tenant, TenantBook
from autoscaler.proxy.tenants.gate import TenantGate
from autoscaler.proxy.tenants.options import TenantOptions
from tests.fakes.client import Client
from tests.fakes.front import front
from tests.fakes.model_pools import ModelPool, models_front
from tests.fakes.upstream import Upstream, says


@pytest.fixture
async def servers():
    async with Upstream(says(b"chat")) as chat, Upstream(says(b"code")) as code:
        yield chat, code


def gate() -> TenantGate:
    book = TenantBook({"acme": Tenant("acme", pools=frozenset({"chat"})), "all": Tenant("all")})
    return TenantGate(TenantOptions(header="X-Tenant"), book, SystemClock())


async def test_the_model_of_the_body_chooses_the_pool(servers):
    chat, code = servers
    pools = ModelPool("chat", chat, named=["small"]), ModelPool("code", code, named=["large", "alias"])
    async with models_front(*pools) as asked:
        said = [(await asked.chat(model)).body for model in ("small", "large", "alias", "small")]
        assert said == [b"chat", b"code", b"code", b"chat"]
        received = json.loads(chat.requests[0].body)
        assert received == {"messages": [{"content": "hi"}], "model": "small"}


async def test_what_servers_list_counts_and_adapters_are_models_of_their_pool(servers):
    chat, code = servers
    pools = (
        ModelPool("chat", chat, named=["small"], lists=["small", "adapter"]),
        ModelPool("code", code, named=["large"], lists=["large", "small"]),
    )
    async with models_front(*pools) as asked:
        assert (await asked.chat("adapter")).body == b"chat"
        assert (await asked.chat("small")).body == b"chat"  # a name of the configuration goes first


async def test_an_unknown_model_is_404_with_the_names_that_there_are(servers):
    pools = ModelPool("chat", servers[0], named=["small"]), ModelPool("code", servers[1], named=["large"])
    async with models_front(*pools) as asked:
        answer = await asked.chat("medium")
        assert answer.status == 404
        assert answer.json["error"]["code"] == "model_not_found"
        assert answer.json["error"]["type"] == "invalid_request_error"
        assert (
            answer.json["error"]["message"]
            == "The model 'medium' does not exist here; there is small, large."
        )
        assert servers[0].requests == servers[1].requests == []
        assert pools[0].facts.told == []


async def test_an_adapter_that_was_just_loaded_is_found_without_waiting(servers):
    pool = ModelPool("chat", servers[0], named=["small"], lists=["small"])
    async with models_front(pool, ModelPool("code", servers[1], named=["large"]), looks=False) as asked:
        pool.lists = ["small", "new"]
        assert (await asked.chat("new")).body == b"chat"
        for _ in range(5):
            assert (await asked.chat("none")).status == 404
        assert pool.asked <= 2  # a stranger cannot make us ask the servers over and over


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"", "does not say which model"),
        (b'{"messages": []}', "does not say which model"),
        (b'{"model": 3}', "no JSON object with a text"),
        (b"\x1f\x8b", "no JSON object with a text"),
        (b'{"messages": "' + b"x" * 200_000 + b'", "model": "small"}', "write it first"),
    ],
)
async def test_a_body_without_a_model_is_400(servers, body, why):
    pools = ModelPool("chat", servers[0], named=["small"]), ModelPool("code", servers[1], named=["large"])
    options = ProxyOptions(port=0, linger=0.1, body_spool_bytes=4096, read_buffer_bytes=1024)
    async with models_front(*pools, options=options) as asked:
        answer = await asked.ask("/v1/chat/completions", body)
        assert answer.status == 400
        assert answer.json["error"]["code"] == "model_missing"
        assert why in answer.json["error"]["message"]
        assert "small, large" in answer.json["error"]["message"]


async def test_a_long_body_goes_on_behind_its_model(servers):
    pools = ModelPool("chat", servers[0], named=["small"]), ModelPool("code", servers[1], named=["large"])
    body = {"model": "large", "messages": "x" * 300_000}
    options = ProxyOptions(port=0, linger=0.1, body_spool_bytes=4096)
    async with models_front(*pools, options=options) as asked:
        assert (await asked.ask("/v1/x", body)).body == b"code"
        assert json.loads(servers[1].requests[0].body) == body


async def test_a_client_that_waits_to_be_asked_for_its_body_is_asked_once(servers):
    pools = ModelPool("chat", servers[0], named=["small"]), ModelPool("code", servers[1], named=["large"])
    async with models_front(*pools) as asked:
        client, body = await Client.connect(asked.server.port), b'{"model": "large"}'
        client.send(b"POST /v1/x HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 18\r\n\r\n")
        assert (await client.head()).status == 100
        client.send(body)
        assert (await client.answer()).body == b"code"
        assert servers[1].requests[0].body == body
        client.close()


async def test_the_list_is_that_of_all_pools_in_the_words_of_the_servers(servers):
    pools = (
        ModelPool("chat", servers[0], named=["small"], lists=["small", "adapter"], prefix="/v1/chat"),
        ModelPool("code", servers[1], named=["large"], prefix="/"),
        ModelPool("other", servers[1], named=["elsewhere"], prefix="/other/v1"),
    )
    async with models_front(*pools) as asked:
        answer = await asked.get()
        assert answer.status == 200
        assert answer.json["object"] == "list"
        assert [each["id"] for each in answer.json["data"]] == ["small", "adapter", "large"]
        assert answer.json["data"][1] == {"id": "adapter", "x": 1}
        assert answer.json["data"][2]["object"] == "model"
        assert (await asked.get("/v1/models/adapter")).json == {"id": "adapter", "x": 1}
        assert (await asked.get("/v1/models/medium")).status == 404
        assert servers[0].requests == servers[1].requests == []


async def test_one_model_is_found_by_its_name_with_a_slash(servers):
    async with models_front(ModelPool("chat", servers[0], named=["org/small"])) as asked:
        assert (await asked.get("/v1/models/org/small")).json["id"] == "org/small"
        assert (await asked.get("/v1/models/org%2Fsmall")).json["id"] == "org/small"


async def test_while_nothing_is_known_of_a_pool_its_server_is_asked(servers):
    servers[0].script = says(b'{"object": "list", "data": []}')
    async with models_front(ModelPool("chat", servers[0])) as asked:
        assert (await asked.get()).body == b'{"object": "list", "data": []}'
        assert (await asked.chat("whatever")).status == 200


async def test_a_list_that_leads_to_another_kind_of_pool_is_passed_on(servers):
    pools = (
        ModelPool("plain", servers[0], is_openai=False, prefix="/"),
        ModelPool("code", servers[1], named=["large"], prefix="/v1/chat"),
    )
    async with models_front(*pools) as asked:
        assert (await asked.get()).body == b"chat"


async def test_a_pool_alone_at_its_prefix_takes_every_name(servers):
    async with models_front(ModelPool("chat", servers[0], named=["small"])) as asked:
        assert (await asked.chat("whatever")).body == b"chat"


async def test_a_tenant_sees_and_uses_the_models_of_its_pools(servers):
    pools = ModelPool("chat", servers[0], named=["small"]), ModelPool("code", servers[1], named=["large"])
    async with models_front(*pools, gate=gate()) as asked:
        listed = [
            [each["id"] for each in (await asked.get("/v1/models", f"X-Tenant: {name}")).json["data"]]
            for name in ("acme", "all")
        ]
        assert listed == [["small"], ["small", "large"]]
        assert (await asked.get()).status == 401
        assert (await asked.chat("small", "X-Tenant: acme")).status == 200
        assert (await asked.chat("large", "X-Tenant: acme")).status == 403
        assert "large" not in (await asked.chat("x", "X-Tenant: acme")).json["error"]["message"]


async def test_nobody_uploads_a_body_without_a_key(servers):
    pools = ModelPool("chat", servers[0], named=["small"]), ModelPool("code", servers[1], named=["large"])
    async with models_front(*pools, gate=gate()) as asked:
        answer = await asked.ask("/v1/x", None, "Content-Length: 100000")
        assert answer.status == 401


async def test_a_control_call_reaches_the_servers_of_all_pools_that_share_the_prefix(servers):
    pools = [
        ModelPool(name, server, named=[name], broadcast=("/v1/abort",))
        for name, server in zip(("chat", "code"), servers, strict=True)
    ]
    async with models_front(*pools) as asked:
        assert (await asked.ask("/v1/abort", {"rid": "x"})).status == 200
        assert [len(server.requests) for server in servers] == [1, 1]


async def test_other_pools_cannot_share_a_prefix(servers):
    async with front(servers[0].replica()) as asked:
        routes = [PoolRoute(asked.drive, pool.options) for pool in asked.server._pools] * 2
        with pytest.raises(ValueError, match="prefix of its own"):
            ProxyServer(ProxyOptions(port=0), routes, SystemClock())
