"""One form of file for three commands, and what each of them cannot do."""

from pathlib import Path

import pytest

from autoscaler.errors import SettingsError
from autoscaler.platforms.kubernetes import LeaseOptions
from autoscaler.settings import load
from autoscaler.settings.schema_leadership import LockOptions

STATIC = "platform: {kind: static, urls: [http://127.0.0.1:9001]}"
TOLD = "platform: {kind: controller}"
PROXIES = "demand: {kind: list, doors: proxies, urls: [http://10.0.0.5:8082]}"
LIST = "demand: {kind: list, urls: [http://10.0.0.5:8082]}"


def problems(tmp_path, text: str, command: str) -> list[str]:
    file = tmp_path / "f.yaml"
    file.write_text(text, "utf-8")
    try:
        load(file, {}, command)
    except SettingsError as error:
        return [f"{each.key}: {each.fault}" for each in error.problems]
    return []


def pool(*lines: str) -> str:
    return "pools:\n  a:\n" + "".join(f"    {line}\n" for line in lines)


@pytest.mark.parametrize(
    "command, text",
    [
        ("run", pool(STATIC)),
        ("sidecar", pool(STATIC)),
        ("controller", pool(STATIC, LIST)),
        ("sidecar", pool(TOLD)),
        ("sidecar", "tenants: {keys_file: k}\n" + pool(STATIC)),
        ("controller", pool(STATIC, PROXIES)),
        ("controller", "leadership: {lock_file: /run/lead}\n" + pool(STATIC, LIST)),
    ],
)
def test_a_file_of_its_own_kind_is_right(tmp_path, command, text):
    assert problems(tmp_path, text, command) == []


@pytest.mark.parametrize(
    "command, text, told",
    [
        ("run", pool(STATIC, LIST), "pools.a.demand: got a place to read it from"),
        ("sidecar", pool(STATIC, LIST), "pools.a.demand: got a place to read it from"),
        ("controller", pool(STATIC), "pools.a.demand: missing"),
        ("sidecar", pool("platform: {kind: keda, urls: []}"), "pools.a.platform.kind: got keda"),
        (
            "controller",
            pool('platform: {kind: local, command: [x, "{port}"]}', LIST),
            "pools.a.platform.kind: got local",
        ),
        ("run", pool(TOLD), "pools.a.platform.kind: got controller"),
        ("controller", pool(TOLD, LIST), "pools.a.platform.kind: got controller"),
        ("sidecar", pool(TOLD, "slots_per_replica: 4"), "pools.a.slots_per_replica: got 4, and a controller"),
        (
            "sidecar",
            pool(TOLD, "server: {kind: triton, model: m, batching: auto}"),
            "pools.a.server.batching: got auto, and proxies that share",
        ),
        (
            "controller",
            pool(STATIC, PROXIES, "slots_per_replica: auto"),
            "pools.a.slots_per_replica: got auto, and slots that are divided",
        ),
        ("sidecar", pool(STATIC, "signals: {e: {preset: vllm}}"), "pools.a.signals: got some"),
        ("run", "leadership: {lease: a}\n" + pool(STATIC), "leadership.lease: got a, and `autoscaler run`"),
        ("sidecar", "leadership: {lock_file: a}\n" + pool(STATIC), "leadership.lock_file: got a"),
    ],
)
def test_what_a_command_cannot_do_is_told_at_its_place(tmp_path, command, text, told):
    assert any(each.startswith(told) for each in problems(tmp_path, text, command))


def test_two_ways_to_lead_are_one_too_many(tmp_path):
    text = "leadership: {lock_file: a, lease: b}\n" + pool(STATIC, LIST)
    assert problems(tmp_path, text, "controller")[0].startswith('leadership.lease: got "b" beside lock_file')


@pytest.mark.parametrize(
    "written, options",
    [
        ("", None),
        ("leadership: {lock_file: /run/lead}\n", LockOptions(Path("/run/lead"))),
        ("leadership: {lease: chat, namespace: gpus}\n", LeaseOptions("chat", "gpus")),
    ],
)
def test_who_leads_is_said_by_a_file_or_a_lease(tmp_path, written, options):
    file = tmp_path / "f.yaml"
    file.write_text(written + pool(STATIC, LIST), "utf-8")
    assert load(file, {}, "controller").leadership == options


def test_pools_of_a_controller_need_no_routes_of_their_own(tmp_path):
    other = "  b:\n    platform: {kind: static, urls: [http://127.0.0.1:9002]}\n    " + LIST + "\n"
    assert problems(tmp_path, pool(STATIC, LIST) + other, "controller") == []
    assert load(tmp_path / "f.yaml", {}).only_decides


@pytest.mark.parametrize("keys, why", [("", "neither"), ("url: http://a:1, srv: _a._tcp.b, ", "both")])
def test_doors_in_the_dns_are_a_name_or_a_service_record(tmp_path, keys, why):
    told = problems(tmp_path, pool(STATIC, f"demand: {{{keys}kind: dns}}"), "controller")
    assert told[0].startswith(f"pools.a.demand: got {why} of url and srv")


def test_a_controller_takes_at_least_one_of_the_seconds_that_sidecars_tell_of(tmp_path):
    text = "control_interval: 500ms\n"
    often = LIST.replace("}", ", interval: 200ms, timeout: 200ms}")
    [found] = problems(tmp_path, text + pool(STATIC, often), "controller")
    assert found.startswith("control_interval: got 0.5s")
    assert problems(tmp_path, text + pool(STATIC), "run") == []
