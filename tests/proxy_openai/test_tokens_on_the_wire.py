"""Tokens of answers on their way: counted once, timed, told; the client gets every byte as it is."""

import asyncio

import pytest

from autoscaler.clock import SystemClock
from autoscaler.dispatch.tenant_limits import TenantLimits
from autoscaler.proxy.options import RouteOptions
from autoscaler.proxy.tenants.book import Tenant, TenantBook
from autoscaler.proxy.tenants.gate import TenantGate
from autoscaler.proxy.tenants.options import TenantOptions
from tests.fakes.front import Front, front
from tests.fakes.openai_server import SSE, chat_body, chat_stream, chunk, streams, usage
from tests.fakes.upstream import Upstream, says

OPENAI = RouteOptions(prefix="/v1", reads_tokens=True)
CHAT = "/v1/chat/completions"
ASKED = b'{"model": "base"}'  # 17 bytes: four tokens by the estimate


def told(asked: Front) -> list[tuple[int, int, bool]]:
    return [(use.tokens_in, use.tokens_out, use.is_estimated) for use in asked.facts.uses]


async def test_the_tokens_of_a_body_are_told_and_its_bytes_pass_unchanged():
    body = chat_body("hello", usage(9, 4))
    async with Upstream(says(body)) as server, front(server.replica(), route=OPENAI) as asked:
        assert (await asked.ask(CHAT, ASKED)).body == body
        assert told(asked) == [(9, 4, False)]
        assert not asked.facts.uses[0].is_streamed


async def test_the_tokens_of_a_stream_are_told_and_its_events_pass_unchanged():
    events = chat_stream(["a", "b"], usage(9, 4))
    async with Upstream(streams(events)) as server, front(server.replica(), route=OPENAI) as asked:
        assert (await asked.ask(CHAT, ASKED)).body == b"".join(events)
        await asked.check_nothing_is_left()
        assert told(asked) == [(9, 4, False)]


async def test_a_stream_that_says_nothing_is_estimated():
    async with (
        Upstream(streams(chat_stream(["a", "b", "c"]))) as server,
        front(server.replica(), route=OPENAI) as asked,
    ):
        await asked.ask(CHAT, ASKED)
        assert told(asked) == [(4, 3, True)]


async def test_time_to_the_first_token_begins_with_the_slot_and_ends_with_text():
    async def script(wire, request):
        wire.send_head(*SSE)
        wire.send_chunk(chunk({"role": "assistant", "content": ""}))
        await asyncio.sleep(0.1)
        for word in "abc":
            wire.send_chunk(chunk({"content": word}))
            await asyncio.sleep(0.05)
        wire.send(b"0\r\n\r\n")

    async with Upstream(script) as server, front(server.replica(), route=OPENAI) as asked:
        await asked.ask(CHAT, ASKED)
        use = asked.facts.uses[0]
        assert 0.09 <= use.first_at - use.started_at < 1.0
        assert 0.04 <= use.time_per_token < 0.5


async def test_what_a_stream_brought_before_its_client_left_counts():
    async def script(wire, request):
        wire.send_head(*SSE)
        wire.send_chunk(chunk({"content": "a"}))
        await wire.closed.wait()

    async with Upstream(script) as server, front(server.replica(), route=OPENAI) as asked:
        client = await asked.client()
        client.ask(CHAT, ASKED)
        await client.head()
        await client.event()
        client.reset()
        await asked.check_nothing_is_left()
        assert told(asked) == [(4, 1, True)]


@pytest.mark.parametrize("status", ["404 Not Found", "500 Internal Server Error"])
async def test_an_error_has_no_tokens(status):
    said = says(b'{"error": {"message": "no"}}', status=status)
    async with Upstream(said) as server, front(server.replica(), route=OPENAI) as asked:
        await asked.ask(CHAT, ASKED)
        assert told(asked) == []


async def test_answers_of_other_pools_are_not_looked_at():
    async with Upstream(says(chat_body("x", usage(9, 4)))) as server, front(server.replica()) as asked:
        await asked.ask(CHAT, ASKED)
        assert told(asked) == []


async def test_an_answer_that_is_given_twice_was_made_once():
    events = chat_stream(["a", "b"], usage(9, 4))
    async with Upstream(streams(events)) as server, front(server.replica(), route=OPENAI) as asked:
        for _ in range(2):
            answer = await asked.ask(CHAT, ASKED, "Idempotency-Key: k")
            assert answer.body == b"".join(events)
        assert len(server.requests) == 1
        assert told(asked) == [(9, 4, False)]


async def test_the_limit_of_a_tenant_counts_the_same_tokens():
    book = TenantBook({"acme": Tenant("acme", TenantLimits(token_rate=1.0))})
    gate = TenantGate(TenantOptions(header="X-Tenant"), book, SystemClock())
    async with (
        Upstream(says(chat_body("x", usage(50, 20)))) as server,
        front(server.replica(), route=OPENAI, gate=gate) as asked,
    ):
        assert (await asked.ask(CHAT, ASKED, "X-Tenant: acme")).status == 200
        assert (await asked.ask(CHAT, ASKED, "X-Tenant: acme")).status == 429
        assert told(asked) == [(50, 20, False)]
