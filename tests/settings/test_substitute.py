"""A pool that stands in for another: what cannot be meant is told before anything runs."""

import pytest

from autoscaler.errors import SettingsError
from autoscaler.settings import load

EXEC = 'platform: {kind: exec, scale: [./scale.sh, "{replicas}"], urls: [http://127.0.0.1:%d]}'
A, B, C = EXEC % 9001, EXEC % 9002, EXEC % 9003


def problems(tmp_path, text: str, command=None) -> list[str]:
    file = tmp_path / "f.yaml"
    file.write_text(text, "utf-8")
    try:
        load(file, {}, command)
    except SettingsError as error:
        return [f"{each.key}: {each.fault}" for each in error.problems]
    return []


def pools(**lines: str) -> str:
    """Pools by their names, each with a route of its own."""
    return "pools:\n" + "".join(
        f"  {name}: {{route: {{prefix: /{name}}}, {line}}}\n" for name, line in lines.items()
    )


def test_a_pool_names_the_one_that_stands_in_for_it(tmp_path):
    file = tmp_path / "f.yaml"
    file.write_text(pools(a=f"substitute: b, {A}", b=B), "utf-8")
    found = load(file, {}).pools
    assert (found["a"].substitute, found["b"].substitute) == ("b", None)


def test_two_pools_may_have_the_same_one_and_none_is_none(tmp_path):
    text = pools(a=f"substitute: c, {A}", b=f"substitute: c, {B}", c=f"substitute: none, {C}")
    assert problems(tmp_path, text) == []


TRITON = "server: {kind: triton}, "
LOCAL = 'platform: {kind: local, command: [serve, "{port}"]}'
LOCAL_GRPC = 'platform: {kind: local, command: [serve, "{port}", "{grpc_port}"]}'


@pytest.mark.parametrize(
    "text, said",
    [
        (pools(a=f"substitute: a, {A}"), "got a, which is this pool itself"),
        (pools(a=f"substitute: chat, {A}", chad=B), "got chat, and there is no such pool"),
        (pools(a=f"substitute: b, {A}", b=f"substitute: a, {B}"), "got b, for which a stands in"),
        (
            pools(a=f"substitute: b, {A}", b=f"substitute: c, {B}", c=C),
            "got b, for which c stands in",
        ),
        (
            pools(a="substitute: b, platform: {kind: static, urls: [http://127.0.0.1:9001]}", b=B),
            "none can be missing",
        ),
        (
            pools(a=f"substitute: b, {A}", b=f"server: {{kind: openai}}, {B}"),
            "got b, whose servers are of kind openai, and those here are of kind plain_http",
        ),
        (
            pools(a=f"substitute: b, {TRITON}{LOCAL_GRPC}", b=f"{TRITON}{LOCAL}"),
            "got b, whose servers take no gRPC, and those here take gRPC",
        ),
        (
            pools(a=f"substitute: b, {A}", b=f"queue: {{classes: {{standard: {{priority: 1}}}}}}, {B}"),
            "got b, whose classes are standard, and those here are ",
        ),
    ],
)
def test_what_cannot_stand_in_is_told_with_the_reason(tmp_path, text, said):
    found = problems(tmp_path, text)
    assert any(said in each and each.startswith("pools.a.substitute: ") for each in found), found


def test_servers_that_somebody_else_runs_may_stand_in(tmp_path):
    spare = "platform: {kind: static, urls: [http://127.0.0.1:9002]}"
    assert problems(tmp_path, pools(a=f"substitute: b, {A}", b=spare)) == []


@pytest.mark.parametrize("command", ["sidecar", "controller"])
def test_only_the_program_that_has_both_queues_takes_it(tmp_path, command):
    text = pools(a=f"substitute: b, {A}", b=B)
    assert problems(tmp_path, text, "run") == []
    assert any("hands no requests over" in each for each in problems(tmp_path, text, command))
