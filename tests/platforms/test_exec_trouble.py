"""Commands that cannot be run, say too much, or lie; and a lead that goes while they fail."""

import asyncio
import errno
import json
import os

import pytest

from autoscaler.errors import PlatformUnavailable
from autoscaler.platforms.exec_command import ExecCommand, ExecOptions, command
from autoscaler.platforms.exec_command.command import run_command
from autoscaler.platforms.exec_command.platform import busy_as_json
from autoscaler.remote_fleet import RemoteFleetOptions
from tests.fakes.listed_servers import ScriptedServers
from tests.fakes.replica_listener import FakeReplicaListener

A = "http://127.0.0.1:9001"


def sh(script):
    return ("sh", "-c", script, "script")


async def until(condition):
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.002)


@pytest.mark.parametrize(
    ("content", "mode", "complaint"),
    [
        ("echo hi", 0o644, "Permission denied"),
        ("echo hi", 0o755, "Exec format error"),
        ("#!/no/such/interpreter\n", 0o755, "No such file or directory"),
    ],
)
async def test_a_program_that_cannot_be_run_is_told(tmp_path, content, mode, complaint):
    program = tmp_path / "program"
    program.write_text(content)
    program.chmod(mode)
    with pytest.raises(PlatformUnavailable, match=complaint):
        await run_command([str(program)], os.environ, None, 20.0, 1000)


async def test_what_is_no_text_is_borne():
    ran = await run_command(
        sh(r"printf '\377\376ok'; printf 'a\377\033[31mred\n' >&2; exit 3"), os.environ, None, 20, 9
    )
    assert (ran.code, ran.output, ran.errors) == (3, b"\xff\xfeok", "a\N{REPLACEMENT CHARACTER}[31mred")


async def test_a_fleet_too_large_for_the_environment_is_told_of_its_busiest():
    busy = {f"http://10.0.{number // 250}.{number % 250}:8000": number % 7 for number in range(20_000)}
    told = busy_as_json(busy)
    assert 3000 < len(json.loads(told)) < 20_000
    assert min(json.loads(told).values()) == 5
    ran = await run_command(sh("true"), {**os.environ, "AUTOSCALER_BUSY": told}, None, 20.0, 1000)
    assert ran.code == 0
    assert busy_as_json({A: 2, "http://idle": 0}) == json.dumps({A: 2})


async def test_who_stands_by_runs_nothing_again_until_it_is_asked_again(tmp_path):
    scaled, works = tmp_path / "scaled", tmp_path / "works"
    script = f'echo "$1" >> {scaled}; test -e {works}'
    fleet = RemoteFleetOptions(state_dir=tmp_path / "state", urls=(A,), probe_interval=0.001)
    options = ExecOptions("chat", (*sh(script), "{replicas}"), fleet, retry_initial=0.001, retry_max=0.001)
    platform = ExecCommand(options, ScriptedServers(A))
    await platform.start(FakeReplicaListener())
    await platform.scale_to(5)
    await until(lambda: scaled.exists() and len(scaled.read_text().split()) > 1)
    platform.stand_by()
    await asyncio.sleep(0.05)
    runs = len(scaled.read_text().split())
    await asyncio.sleep(0.1)
    assert len(scaled.read_text().split()) == runs
    await until(lambda: platform.last_error is None)
    works.touch()
    await platform.scale_to(5)
    await until(lambda: platform._done == 5)
    platform.stand_by()
    await platform.scale_to(5)  # another may have scaled meanwhile
    await until(lambda: len(scaled.read_text().split()) == runs + 2)
    await platform.stop()


async def test_a_fault_that_ends_the_scaling_is_not_silent(tmp_path):
    fleet = RemoteFleetOptions(state_dir=tmp_path / "state", urls=(A,), probe_interval=0.001)
    platform = ExecCommand(ExecOptions("chat", (*sh("true"), "{replicas}"), fleet), ScriptedServers(A))
    await platform.start(FakeReplicaListener())
    platform._scale = lambda wish: 1 / 0
    await platform.scale_to(5)
    with pytest.raises(PlatformUnavailable, match="a fault of this program ended 'scale chat'"):
        async with asyncio.timeout(20):
            while await platform.fleet():
                await asyncio.sleep(0)
    await platform.stop()


async def test_a_run_that_ends_after_the_lead_has_gone_counts_for_nothing(tmp_path):
    scaled, go = tmp_path / "scaled", tmp_path / "go"
    script = f'echo "$1" >> {scaled}; until test -e {go}; do sleep 0.01; done'
    fleet = RemoteFleetOptions(state_dir=tmp_path / "state", urls=(A,), probe_interval=0.001)
    platform = ExecCommand(ExecOptions("chat", (*sh(script), "{replicas}"), fleet), ScriptedServers(A))
    await platform.start(FakeReplicaListener())
    await platform.scale_to(5)
    await until(scaled.exists)
    platform.stand_by()
    go.touch()
    await until(lambda: not platform._one_at_a_time.locked())
    await platform.scale_to(5)
    await until(lambda: scaled.read_text().split() == ["5", "5"])
    await platform.stop()


async def test_no_run_begins_once_another_acts_though_nobody_has_told_it(tmp_path):
    scaled, acts = tmp_path / "scaled", [True]
    script = f'echo "$1" >> {scaled}; exit 1'
    fleet = RemoteFleetOptions(state_dir=tmp_path / "state", urls=(A,), probe_interval=0.001)
    options = ExecOptions("chat", (*sh(script), "{replicas}"), fleet, retry_initial=0.05, retry_max=0.05)
    platform = ExecCommand(options, ScriptedServers(A))
    platform.act_while(lambda: acts[-1])
    await platform.start(FakeReplicaListener())
    await platform.scale_to(5)
    await until(lambda: platform.last_error is not None)
    acts.append(False)  # as after the program has stood still, while another came to lead
    runs = len(scaled.read_text().split())
    await until(lambda: platform.last_error is None)
    assert len(scaled.read_text().split()) == runs
    acts.append(True)
    await platform.scale_to(6)
    await until(lambda: "6" in scaled.read_text().split())
    await platform.stop()


async def test_what_is_not_wanted_any_more_when_status_has_ended_is_not_run(tmp_path):
    scaled, asked, go = tmp_path / "scaled", tmp_path / "asked", tmp_path / "go"
    status = sh(f"touch {asked}; until test -e {go}; do sleep 0.01; done; exit 1")
    fleet = RemoteFleetOptions(state_dir=tmp_path / "state", urls=(A,), probe_interval=0.001)
    script = (*sh(f'echo "$1" >> {scaled}'), "{replicas}")
    go.touch()
    platform = ExecCommand(ExecOptions("chat", script, fleet, status=status), ScriptedServers(A))
    await platform.start(FakeReplicaListener())
    go.unlink()
    asked.unlink()
    looking = asyncio.create_task(platform._inquiry.once())
    await until(asked.exists)
    await platform.scale_to(3)
    await asyncio.sleep(0.02)  # it waits for `status`
    platform.stand_by()
    go.touch()
    await looking
    await platform.scale_to(4)
    await until(lambda: platform._done == 4)
    assert scaled.read_text().split() == ["4"]
    await platform.stop()


async def test_without_a_free_descriptor_no_command_is_started_and_that_is_told(monkeypatch):
    def refuse():
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(command.os, "pipe", refuse)
    with pytest.raises(PlatformUnavailable, match=r"Too many open files; permit more .*ulimit -n"):
        await run_command(sh("true"), os.environ, None, 20.0, 1000)
