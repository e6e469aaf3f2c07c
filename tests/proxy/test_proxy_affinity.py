"""Requests that are alike find the replica that served the one before."""

import json

import pytest

from autoscaler.dispatch import DispatchOptions
from autoscaler.dispatch.affinity import AffinityOptions
from autoscaler.proxy.affinity_key import AffinityKeyOptions, affinity_key
from autoscaler.proxy.options import RouteOptions
from tests.fakes.front import front
from tests.fakes.upstream import Upstream, says

BY_SESSION = AffinityKeyOptions(session_header="X-Session-Id")
BY_PROMPT = AffinityKeyOptions(prompt_prefix_bytes=16)
KEEP_TOGETHER = DispatchOptions(affinity=AffinityOptions(load_bound=2.0))


def key(options: AffinityKeyOptions, body: bytes = b"", path: str = "/v1/chat/completions", **fields: str):
    said = {name.replace("_", "-"): value for name, value in fields.items()}
    return affinity_key(options, said.get, path, lambda: body)


def chat(*messages: str, **more: object) -> bytes:
    return json.dumps({"model": "m", **more, "messages": list(messages)}).encode()


def test_a_session_is_named_by_its_header():
    assert key(BY_SESSION, X_Session_Id="s1") == "s1"
    assert key(BY_SESSION) == ""
    assert len(key(BY_SESSION, X_Session_Id="s" * 8000)) == 256


def test_prompts_are_alike_by_their_beginning_whatever_stands_before_them():
    first = key(BY_PROMPT, chat("You are kind.", "Hello"))
    assert first != ""
    assert key(BY_PROMPT, chat("You are kind.", "Bye", "…")) == first
    assert key(BY_PROMPT, chat("You are kind.", "Hello", temperature=0.5, user="u" * 100)) == first
    assert key(BY_PROMPT, chat("You are rude.", "Hello")) != first


@pytest.mark.parametrize("field", [b"messages", b"prompt", b"input"])
def test_prompts_of_every_kind_of_route_are_found(field):
    assert key(BY_PROMPT, b'{"%b": "once upon a time"}' % field) != ""


@pytest.mark.parametrize(
    "body, path",
    [
        (b"", "/v1/embeddings"),
        (b"no json", "/v1/embeddings"),
        (chat("a"), "/v2/models/m/infer"),
        (b" " * 20_000 + chat("a"), "/v1/chat/completions"),
    ],
)
def test_a_request_without_a_prompt_that_is_soon_found_has_no_key(body, path):
    assert key(BY_PROMPT, body, path) == ""


def test_a_session_goes_before_the_prompt_and_a_body_is_not_touched_for_it():
    def nothing() -> bytes:
        raise AssertionError("the body was read")

    both = AffinityKeyOptions("X-Session-Id", 16)
    assert affinity_key(both, {"X-Session-Id": "s1"}.get, "/v1/x", nothing) == "s1"
    assert affinity_key(BY_SESSION, {}.get, "/v1/x", nothing) == ""


@pytest.mark.parametrize("impossible", [{"session_header": ""}, {"prompt_prefix_bytes": 0}])
def test_impossible_options_are_refused_by_name(impossible):
    with pytest.raises(ValueError, match=next(iter(impossible))):
        AffinityKeyOptions(**impossible)


async def test_sessions_stay_where_they_are_and_spread_over_all():
    async with Upstream(says(b"a")) as a, Upstream(says(b"b")) as b:
        route = RouteOptions(affinity=BY_SESSION)
        replicas = a.replica(slots=4), b.replica(slots=4)
        async with front(*replicas, route=route, dispatch=KEEP_TOGETHER) as proxy:
            answers = {
                session: {(await proxy.ask("/x", b"{}", f"X-Session-Id: s{session}")).body for _ in range(3)}
                for session in range(12)
            }
    assert all(len(bodies) == 1 for bodies in answers.values())
    assert set.union(*answers.values()) == {b"a", b"b"}


async def test_prompts_with_one_beginning_meet_at_one_replica():
    async with Upstream(says(b"a")) as a, Upstream(says(b"b")) as b:
        route = RouteOptions(affinity=BY_PROMPT)
        replicas = a.replica(slots=4), b.replica(slots=4)
        async with front(*replicas, route=route, dispatch=KEEP_TOGETHER) as proxy:
            bodies = [chat("You are kind.", f"Question {n}") for n in range(6)]
            answers = {(await proxy.ask("/v1/chat/completions", body)).body for body in bodies}
    assert len(answers) == 1
