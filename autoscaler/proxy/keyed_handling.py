"""The handling of a request with an `Idempotency-Key`: joins the execution for it, or begins it."""

from collections.abc import Awaitable
from dataclasses import replace

from aiohttp import web

from autoscaler.proxy.answers import DEADLINE, Refusal, Refused
from autoscaler.proxy.call import CallBroke
from autoscaler.proxy.conversation import Conversation
from autoscaler.proxy.door import Route
from autoscaler.proxy.idempotency import Run, fingerprint_of, name_of
from autoscaler.proxy.keyed_execution import KeyedExecution
from autoscaler.proxy.onward import Onward
from autoscaler.proxy.recording import Playback, Recording
from autoscaler.proxy.relay import Relay
from autoscaler.proxy.time_limit import TimeLimit
from autoscaler.proxy.wishes import Wishes

_REPLAYED = "Idempotency-Replayed"

_TOO_LARGE = Refusal(
    413,
    "body_too_large_for_key",
    "A request with an Idempotency-Key is read whole before it is executed; this one is too large for that.",
)


async def execute_once(
    conversation: Conversation, route: Route, onward: Onward, wishes: Wishes
) -> web.StreamResponse:
    """Give the client the answer of the execution for its key; raises `Refused` if there is none."""
    body = onward.body
    if conversation.expects_continue and not body.complete:
        await conversation.say_continue()
        await body.spool()
    if not body.complete:
        raise Refused(_TOO_LARGE)
    run = _run_of(conversation, route, onward, wishes)
    conversation.has_joined = True
    with run.joined() as playback:
        try:
            with TimeLimit(wishes.timeout):
                await playback.begin()
                return await _play_back(conversation, playback)
        except TimeoutError:
            return conversation.break_off(replace(DEADLINE, executed="maybe"))


def _run_of(conversation: Conversation, route: Route, onward: Onward, wishes: Wishes) -> Run:
    door, request, tenant = conversation.door, conversation.request, conversation.entry.tenant

    def execute(recording: Recording) -> Awaitable[None]:
        own = replace(onward, body=onward.body.handed_over())
        return KeyedExecution(door, route, own, wishes.timeout, tenant).record(recording)

    run, was_there = door.idempotency.run_of(
        name_of(wishes.key or "", request, route.drive.name, tenant),
        fingerprint_of(onward.target, request, onward.body.held()),
        execute,
    )
    if was_there:
        conversation.notes[_REPLAYED] = "true"
    return run


async def _play_back(conversation: Conversation, playback: Playback) -> web.StreamResponse:
    door = conversation.door
    relay = conversation.streaming = Relay(
        conversation.request, playback, conversation.story(), door.options.linger, conversation.entry.answer
    )
    if conversation.is_last:
        relay.response.force_close()
    try:
        await relay.run()
    except CallBroke:
        return conversation.break_off(playback.refusal)
    except ConnectionError:
        pass  # the client is gone; its connection ends the handling
    return relay.response
