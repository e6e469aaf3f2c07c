"""What a check finds when it tries what a configuration names."""

import errno
import socket
import stat
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from autoscaler.cli import check, probe_machine
from autoscaler.cli.check import probe
from autoscaler.cli.findings import Level
from autoscaler.cli.probe_files import probe_folder
from autoscaler.cli.probe_network import probe_address
from autoscaler.cli.probe_objective import service_time_max
from autoscaler.domain import Fleet, Hold, Objective, Observation
from autoscaler.domain.decision import Binding, Reason
from autoscaler.settings import load
from autoscaler.telemetry.history import History
from autoscaler.units import Address
from load.free_port import free_port


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def settings_of(pool: str, **top: str):
    lines = {"listen": "127.0.0.1:0", "admin": "127.0.0.1:0", **top}
    text = "\n".join(f"{key}: {value}" for key, value in lines.items())
    Path("f.yaml").write_text(f"{text}\npools: {{chat: {{{pool}}}}}\n")
    return load(Path("f.yaml"), {})


async def found(settings) -> dict[str, tuple[Level, str]]:
    return {finding.subject: (finding.level, finding.text) for finding in await probe(settings)}


def test_no_name_of_a_key_is_cut_off_and_brackets_of_a_file_are_its_own(monkeypatch, capsys):
    monkeypatch.setattr(check, "_WIDTH_OF_PIPE", 60)
    settings_of("platform: {kind: static, urls: [http://127.0.0.1:1]}")
    Path("f.yaml").rename("f[red].yaml")
    check.check_file(Path("f[red].yaml"), as_json=False)
    text = capsys.readouterr().out
    assert "f[red].yaml" in text
    assert "…" not in text


def local(command: str, more: str = "") -> str:
    return f'platform: {{kind: local, command: [{command}, "{{port}}", "{{gpu}}"], gpus: [0] {more}}}'


async def test_a_server_that_answers_is_good_and_one_that_does_not_is_a_warning():
    async def ready(request):
        return web.Response()

    application = web.Application()
    application.router.add_get("/healthz", ready)
    async with TestServer(application, host="127.0.0.1") as server:
        url = f"http://127.0.0.1:{server.port}"
        findings = await found(settings_of(f"platform: {{kind: static, urls: [{url}, http://127.0.0.1:1]}}"))
    assert findings["pools.chat.platform.urls[0]"] == (Level.OK, f"{url} is ready")
    assert findings["pools.chat.platform.urls[1]"] == (
        Level.WARNING,
        "http://127.0.0.1:1 is not ready: no 2xx from GET /healthz; start it, or set server.ready_path",
    )


def test_an_address_that_is_taken_is_a_problem():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = Address("127.0.0.1", taken.getsockname()[1])
        finding = probe_address("listen", address)
    assert finding.level is Level.PROBLEM
    assert "in use by another program" in finding.text
    assert probe_address("listen", address).level is Level.OK


def test_every_interface_is_one_of_each_family_that_the_kernel_knows(monkeypatch):
    of_any_family = socket.socket

    def without_ipv6(family, *given):
        if family == socket.AF_INET6:
            raise OSError(errno.EAFNOSUPPORT, "Address family not supported by protocol")
        return of_any_family(family, *given)

    port = free_port()
    monkeypatch.setattr(socket, "socket", without_ipv6)
    assert probe_address("listen", Address("", port)).level is Level.OK
    assert probe_address("listen", Address("::1", port)).level is Level.PROBLEM


def test_an_address_of_another_machine_is_a_problem():
    finding = probe_address("listen", Address("192.0.2.1", 8080))  # reserved for documentation, RFC 5737
    assert finding.level is Level.PROBLEM
    assert "no address of this machine" in finding.text


@pytest.mark.parametrize("command, good", [("python3", True), ("no-such-program", False)])
async def test_a_command_is_looked_for_on_the_path(command, good):
    level, text = (await found(settings_of(local(command))))["pools.chat.platform.command"]
    assert (level is Level.OK) == good
    assert command in text


async def test_a_command_that_may_not_be_executed_is_a_problem():
    Path("serve").write_text("#!/bin/sh\n")
    findings = await found(settings_of(local("./serve")))
    assert findings["pools.chat.platform.command"][0] is Level.PROBLEM
    Path("serve").chmod(stat.S_IRWXU)
    findings = await found(settings_of(local("./serve")))
    assert findings["pools.chat.platform.command"][0] is Level.OK


async def test_a_folder_that_is_not_there_is_a_problem():
    findings = await found(settings_of(local("python3", ", cwd: nowhere")))
    assert findings["pools.chat.platform.cwd"][0] is Level.PROBLEM


@pytest.mark.parametrize(
    "there, level",
    [(["0", "GPU-1"], Level.OK), (["1", "GPU-1"], Level.PROBLEM), ([], Level.PROBLEM)],
)
async def test_a_gpu_that_is_not_in_the_machine_is_a_problem(there, level, monkeypatch):
    monkeypatch.setattr(probe_machine, "_gpus_of_this_machine", lambda: there)
    assert (await found(settings_of(local("python3"))))["pools.chat.platform.gpus"][0] is level


async def test_where_nobody_can_tell_of_gpus_nothing_is_said(monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert "pools.chat.platform.gpus" not in await found(settings_of(local("/bin/true")))


async def test_the_tool_of_the_driver_is_understood(monkeypatch, tmp_path):
    tool = tmp_path / "bin" / "nvidia-smi"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\necho '0, GPU-aa'\necho '1, GPU-bb'\n")
    tool.chmod(stat.S_IRWXU)
    monkeypatch.setenv("PATH", f"{tool.parent}:/usr/bin:/bin")
    assert probe_machine._gpus_of_this_machine() == ["0", "GPU-aa", "1", "GPU-bb"]


async def test_a_history_of_another_instance_is_a_problem():
    settings = settings_of("platform: {kind: static, urls: [http://127.0.0.1:1]}", history="h.db")
    assert (await found(settings))["history"] == (Level.OK, "h.db will be made")
    with History("h.db"):
        level, text = (await found(settings))["history"]
    assert level is Level.PROBLEM
    assert "in use by process" in text
    assert (await found(settings))["history"] == (Level.OK, "h.db goes on")


async def test_a_file_that_is_no_history_is_a_problem():
    Path("h.db").write_text("my diary, and nothing for a database to open" * 100)
    settings = settings_of("platform: {kind: static, urls: [http://127.0.0.1:1]}", history="h.db")
    level, text = (await found(settings))["history"]
    assert level is Level.PROBLEM
    assert "not a history file" in text


async def test_a_history_below_a_file_is_a_problem():
    settings = settings_of("platform: {kind: static, urls: [http://127.0.0.1:1]}", history="f.yaml/h.db")
    assert (await found(settings))["history"][0] is Level.PROBLEM


@pytest.mark.parametrize("place", ["/proc/x", "/proc/nowhere/x", f"{'n' * 300}/x", "n" * 300])
async def test_a_place_where_nothing_can_be_made_is_a_problem_whatever_its_permissions_say(place):
    for key in ("history", "state"):
        findings = await found(settings_of(local("python3"), **{key: place}))
        assert findings[key][0] is Level.PROBLEM


def test_a_folder_of_the_kernel_takes_no_state_and_nothing_is_left_of_a_trial(tmp_path):
    assert probe_folder("state", Path("/proc")).level is Level.PROBLEM
    assert probe_folder("state", tmp_path).level is Level.OK
    assert probe_folder("state", tmp_path / "new").level is Level.OK
    assert list(tmp_path.iterdir()) == []


# One server, 60 % busy: P(W > t) = 0.6 exp(-0.4 t / S) = 0.01 at t = 5 s, so S = 2 / ln 60.
def test_the_longest_service_time_agrees_with_the_formula_of_one_server():
    assert service_time_max(Objective(wait_seconds=5.0), slots=1) == pytest.approx(0.48848, rel=1e-4)


def test_more_slots_allow_longer_services_and_very_many_any():
    longest = [service_time_max(Objective(), slots) for slots in (1, 2, 4, 8, 16, 1000)]
    assert longest == sorted(longest)
    assert longest[-1] == float("inf")


async def test_services_longer_than_band_and_wait_allow_are_a_warning():
    settings = settings_of("platform: {kind: static, urls: [http://127.0.0.1:1]}", history="h.db")
    assert (await found(settings))["pools.chat.objective"][0] is Level.OK
    seen = Observation(10.0, 20, 20, 40.0, 80.0, 1.0, 1, 0, 0.0, wall_time=1000.0)
    fleet = Fleet(1, 0, 0, 1, 60.0, 60.0)
    with History("h.db") as history:
        history.record("chat", seen, fleet, Hold(1, Reason.WITHIN_BAND, Binding.WAIT), 1.0, 1000.0)
    level, text = (await found(settings))["pools.chat.objective"]
    assert level is Level.WARNING
    assert "services took 2 s lately" in text


async def test_slots_that_are_not_known_yet_are_not_compared():
    settings = settings_of("slots_per_replica: auto, platform: {kind: static, urls: [http://127.0.0.1:1]}")
    level, text = (await found(settings))["pools.chat.objective"]
    assert (level, text) == (Level.OK, "not compared, for slots are found out while the program runs")
