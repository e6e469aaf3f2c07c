"""Which class a request belongs to, by what is said of it."""

import asyncio

import pytest

from autoscaler.dispatch.priority_class import DEFAULT_CLASSES, PriorityClass
from autoscaler.proxy.options import RouteOptions
from autoscaler.proxy.urgency import class_of
from tests.fakes.front import front
from tests.fakes.upstream import Received, Upstream, UpstreamWire, says


def named(headers: dict[str, str], body: bytes = b"", path: str = "/v1/chat/completions") -> str:
    return class_of(headers, path, body, DEFAULT_CLASSES, "standard").name


@pytest.mark.parametrize(
    "headers, name",
    [
        ({}, "standard"),
        ({"Priority": "u=0"}, "critical"),
        ({"Priority": "u=1, i"}, "critical"),
        ({"Priority": "i, u=3"}, "standard"),
        ({"Priority": "u=5"}, "bulk"),
        ({"Priority": "u=7"}, "deferrable"),
        ({"Priority": "u=9"}, "standard"),
        ({"Priority": "xu=0"}, "standard"),
        ({"Prefer": "respond-async, wait=10"}, "deferrable"),
        ({"Prefer": "respond-async", "Priority": "u=0"}, "deferrable"),
    ],
)
def test_headers_move_a_request_from_the_default_class(headers, name):
    assert named(headers) == name


@pytest.mark.parametrize(
    "body, path, name",
    [
        (b'{"service_tier": "flex"}', "/v1/chat/completions", "bulk"),
        (b'{"service_tier":"priority"}', "/v1/responses", "critical"),
        (b'{"service_tier": "auto"}', "/v1/chat/completions", "standard"),
        (b'{"service_tier": "flex"}', "/v2/models/m/infer", "standard"),
        (b'{"x": "' + b"a" * 500_000 + b'", "service_tier": "flex"}', "/v1/chat/completions", "bulk"),
    ],
)
def test_the_tier_of_an_openai_body_counts_and_long_bodies_are_not_read_whole(body, path, name):
    assert named({}, body, path) == name


def test_what_is_not_there_is_taken_for_the_nearest():
    only = (PriorityClass("all", 1),)
    assert class_of({"Priority": "u=0"}, "/", b"", only, "standard").name == "all"
    assert class_of({"Priority": "u=7"}, "/", b"", only, "no such class").name == "all"


async def order_served(route: RouteOptions) -> list[str]:
    """Let three wait for one slot, the least urgent first; return the order in which they are served."""

    async def script(wire: UpstreamWire, request: Received) -> None:
        await gate.wait()
        await says()(wire, request)

    gate = asyncio.Event()
    async with Upstream(script) as model, front(model.replica(), route=route) as proxy:
        asked = [asyncio.create_task(proxy.ask("/first"))]
        await model.got(1)
        for count, (path, urgency) in enumerate([("/low", 7), ("/plain", 3), ("/high", 0)], start=1):
            asked.append(asyncio.create_task(proxy.ask(path, b"{}", f"Priority: u={urgency}")))
            await proxy.until(waiting=count)
        gate.set()
        await asyncio.gather(*asked)
    return [request.head.target for request in model.requests[1:]]


async def test_e14_a28_the_urgent_go_first_and_the_field_is_passed_on():
    assert await order_served(RouteOptions()) == ["/high", "/plain", "/low"]


async def test_where_clients_are_not_trusted_what_they_say_does_not_count():
    assert await order_served(RouteOptions(urgency_from_clients=False)) == ["/low", "/plain", "/high"]
