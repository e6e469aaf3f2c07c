"""Commands of the user's own that scale, and that may fail, hang, print nonsense or leave things running."""

import asyncio
import contextlib
import json
import os
import shlex
import sys
from pathlib import Path
from random import Random

import psutil
import pytest

from autoscaler.clock import VirtualClock
from autoscaler.errors import PlatformUnavailable
from autoscaler.platforms.exec_command import ExecCommand, ExecOptions
from autoscaler.platforms.exec_command.command import run_command
from autoscaler.platforms.exec_command.options import command_problems
from autoscaler.remote_fleet import RemoteFleetOptions
from tests.fakes.listed_servers import ScriptedServers
from tests.fakes.replica_listener import FakeReplicaListener

A, B = "http://127.0.0.1:9001", "http://127.0.0.1:9002"
LIMIT = 1000


def sh(script):
    return ("sh", "-c", script, "script")


async def until(condition):
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.002)


class Cluster:
    """What the commands of a test act on: a folder. `scale` notes its number, `status` prints a file."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.tell(ready=[A], starting=0)

    def tell(self, **fleet):
        fresh = self.folder / "fleet.new"
        fresh.write_text(json.dumps(fleet))
        fresh.replace(self.folder / "fleet.json")

    def script(self, before="", after=""):
        folder = shlex.quote(str(self.folder))
        return (*sh(f'{before} echo "$1" >> {folder}/scaled; {after}'), "{replicas}")

    @property
    def status(self):
        return ("cat", str(self.folder / "fleet.json"))

    @property
    def scaled(self):
        with contextlib.suppress(FileNotFoundError):
            return [int(line) for line in (self.folder / "scaled").read_text().split()]
        return []


@pytest.fixture
def cluster(tmp_path):
    return Cluster(tmp_path)


@pytest.fixture
async def running(cluster):
    """Starts platforms, and stops them at the end of the test."""
    started = []

    async def start(scale=None, listener=None, clock=None, **given):
        fleet = RemoteFleetOptions(
            state_dir=cluster.folder / "state", probe_interval=0.001, **given.pop("listed", {})
        )
        given = {"retry_initial": 0.001, "retry_max": 0.002, "status_interval": 0.005, **given}
        options = ExecOptions(
            pool="chat",
            scale=scale or cluster.script(),
            fleet=fleet,
            status=given.pop("status", cluster.status),
            **given,
        )
        platform = ExecCommand(options, ScriptedServers(A, B), clock or VirtualClock(), Random(1))
        started.append(platform)
        await platform.start(listener or FakeReplicaListener())
        return platform

    yield start
    for platform in started:
        await platform.stop()


async def test_the_command_is_run_with_the_number_that_is_wanted(cluster, running):
    platform = await running()
    await platform.scale_to(3)
    await until(lambda: cluster.scaled == [3])
    await platform.scale_to(3)
    await platform.scale_to(1)
    await until(lambda: cluster.scaled == [3, 1])
    assert platform.last_error is None


async def test_only_the_newest_wish_is_carried_out_and_never_two_at_once(cluster, running):
    lock = shlex.quote(str(cluster.folder / "lock"))
    platform = await running(cluster.script(f"mkdir {lock} || exit 9; sleep 0.1;", f"rmdir {lock}"))
    await platform.scale_to(2)
    await asyncio.sleep(0.03)
    for wish in (3, 4, 5):
        await platform.scale_to(wish)
    await until(lambda: cluster.scaled == [2, 5])
    assert platform.last_error is None


async def test_a_command_that_fails_is_run_again_and_told_with_its_last_words(cluster, running):
    broken = cluster.folder / "broken"
    broken.touch()
    fails = f"test -e {shlex.quote(str(broken))} && {{ echo one >&2; echo no GPUs left >&2; exit 3; }};"
    platform = await running(cluster.script(fails))
    await platform.scale_to(2)
    await until(lambda: platform.last_error)
    assert platform.last_error == "sh exited with 3, saying: no GPUs left"
    broken.unlink()
    await until(lambda: cluster.scaled == [2])
    await until(lambda: platform.last_error is None)


async def test_what_fails_again_and_again_is_not_counted_on_until_it_succeeds(cluster, running):
    broken = cluster.folder / "broken"
    broken.touch()
    platform = await running(
        cluster.script(f"test ! -e {shlex.quote(str(broken))} || exit 3;"),
        status=None,
        listed={"urls": (A, B)},
    )
    await platform.scale_to(4)
    assert (await platform.fleet()).starting == 2
    async with asyncio.timeout(20):
        while (await platform.fleet()).overdue != 2:
            await asyncio.sleep(0.002)
    assert (await platform.fleet()).starting == 0
    broken.unlink()
    await until(lambda: cluster.scaled == [4])
    async with asyncio.timeout(20):
        while (await platform.fleet()).starting != 2:
            await asyncio.sleep(0.002)
    assert (await platform.fleet()).overdue == 0


async def test_after_a_change_the_status_is_asked_sooner(cluster, running, monkeypatch):
    monkeypatch.setattr("autoscaler.remote_fleet.inquiry._SOON", 0.005)
    platform = await running(status_interval=3600.0)
    await platform.scale_to(2)
    cluster.tell(ready=[A], starting=7)
    async with asyncio.timeout(20):
        while (await platform.fleet()).starting != 7:
            await asyncio.sleep(0.002)
    assert cluster.scaled == [2]


async def test_exit_code_75_asks_for_another_time(cluster, running):
    platform = await running(sh("echo closed >&2; exit 75; # {replicas}"))
    await platform.scale_to(2)
    await until(lambda: platform.last_error)
    assert platform.last_error == "sh asks to be run later: closed"


async def test_a_command_that_hangs_is_ended_with_all_that_it_started(cluster, running):
    pids = shlex.quote(str(cluster.folder / "pids"))
    hangs = sh(f"trap '' TERM; sleep 600 & echo $! $$ > {pids}; wait; # {{replicas}}")
    platform = await running(hangs, timeout=0.2, retry_initial=30.0, retry_max=30.0)
    await platform.scale_to(2)
    await until(lambda: platform.last_error)
    assert platform.last_error == "sh did not end within 0.2 s and was ended"
    for pid in map(int, (cluster.folder / "pids").read_text().split()):
        await until(lambda pid=pid: not is_running(pid))


async def test_a_command_that_runs_when_the_program_ends_is_ended(cluster, running):
    pids = cluster.folder / "pids"
    platform = await running(sh(f"echo $$ > {shlex.quote(str(pids))}; exec sleep 600; # {{replicas}}"))
    await platform.scale_to(2)
    await until(lambda: pids.exists() and pids.read_text())
    await platform.stop()
    await until(lambda: not is_running(int(pids.read_text())))


def is_running(pid):
    with contextlib.suppress(psutil.Error):
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    return False


async def test_no_shell_reads_the_words(tmp_path):
    script = "import sys; print(sys.argv[1:])"
    options = ExecOptions(
        pool="a; touch x $(id)",
        scale=(sys.executable, "-c", script, "--n={replicas}", "{pool}", "{other}", "$HOME"),
        fleet=RemoteFleetOptions(state_dir=tmp_path, urls=(A,)),
    )
    ran = await run_command(options.words_to_scale(7), os.environ, tmp_path, 20.0, LIMIT)
    assert ran.output.decode().strip() == str(["--n=7", "a; touch x $(id)", "{other}", "$HOME"])
    assert list(tmp_path.iterdir()) == []


async def test_what_is_printed_without_end_is_bounded_and_blocks_nobody():
    flood = sh("head -c 5000000 /dev/zero; head -c 5000000 /dev/zero >&2; echo the end >&2")
    ran = await run_command(flood, os.environ, None, 20.0, LIMIT)
    assert (ran.code, len(ran.output)) == (0, LIMIT + 1)
    assert ran.errors.endswith("the end")
    assert len(ran.errors) <= 500


async def test_what_a_command_leaves_running_does_not_hold_it_up(tmp_path):
    pid_file = tmp_path / "pid"
    leaves = sh(f"sleep 600 & echo $! > {shlex.quote(str(pid_file))}; echo started")
    ran = await run_command(leaves, os.environ, None, 20.0, LIMIT)
    left = psutil.Process(int(pid_file.read_text()))
    assert (ran.code, ran.output) == (0, b"started\n")
    assert left.is_running()
    left.kill()


async def test_a_command_that_is_not_there_is_told():
    with pytest.raises(PlatformUnavailable, match="no-such-program cannot be started"):
        await run_command(["no-such-program"], os.environ, None, 1.0, LIMIT)
    with pytest.raises(PlatformUnavailable, match="cannot be started"):
        await run_command(["echo", "a\0b"], os.environ, None, 1.0, LIMIT)


async def test_no_descriptor_is_left_behind():
    await run_command(sh("echo x"), os.environ, None, 20.0, LIMIT)
    before = psutil.Process().num_fds()
    for _ in range(5):
        await run_command(sh("echo x"), os.environ, None, 20.0, LIMIT)
        with contextlib.suppress(PlatformUnavailable):
            await run_command(["no-such-program"], os.environ, None, 1.0, LIMIT)
    await asyncio.sleep(0)
    assert psutil.Process().num_fds() <= before


async def test_the_fleet_is_what_status_prints_and_the_probes_confirm(cluster, running):
    listener = FakeReplicaListener()
    platform = await running(listener=listener)
    fleet = await platform.fleet()
    assert (fleet.ready, fleet.starting) == (1, 0)
    cluster.tell(ready=[A, B], starting=3, draining=[A])
    await listener.until(lambda: B in listener.ready and A in listener.draining)
    fleet = await platform.fleet()
    assert (fleet.ready, fleet.starting, fleet.draining) == (1, 3, 1)


@pytest.mark.parametrize(
    ("status", "complaint"),
    [
        (sh("exit 1"), "sh exited with 1"),
        (sh("kill -9 $$"), "sh was ended by signal 9"),
        (sh("echo 3 ready"), "no report of a fleet"),
        (sh("head -c 6000000 /dev/zero | tr '\\0' ' '"), "at most 4194304 are read"),
        (("no-such-program",), "cannot be started"),
    ],
)
async def test_nobody_can_tell_the_fleet_if_status_does_not(cluster, running, status, complaint):
    platform = await running(status=status)
    with pytest.raises(PlatformUnavailable) as refusal:
        await platform.fleet()
    assert complaint in str(refusal.value)


async def test_who_looks_anew_is_told_what_there_is_now_or_that_nobody_tells(cluster, running):
    platform = await running(status_interval=3600.0)
    cluster.tell(ready=[A], starting=5)  # another has asked for six
    assert (await platform.fleet()).ordered == 1
    await platform.look_anew()
    assert (await platform.fleet()).ordered == 6
    (cluster.folder / "fleet.json").unlink()
    with pytest.raises(PlatformUnavailable, match="cat exited with 1"):
        await platform.look_anew()


async def test_one_failure_of_status_in_between_changes_nothing(cluster, running):
    platform = await running()
    (cluster.folder / "fleet.json").rename(cluster.folder / "away.json")
    await until(lambda: platform.last_error)
    assert (await platform.fleet()).ready == 1
    await until(lambda: platform._inquiry._unanswered >= 3)
    with pytest.raises(PlatformUnavailable):
        await platform.fleet()
    (cluster.folder / "away.json").rename(cluster.folder / "fleet.json")
    await until(lambda: platform.last_error is None)
    assert (await platform.fleet()).ready == 1


async def test_a_fleet_that_is_not_as_wanted_is_asked_for_again_but_not_at_once(cluster, running):
    clock = VirtualClock()
    platform = await running(clock=clock, retry_max=60.0)
    await platform.scale_to(3)
    await until(lambda: platform._done == 3)
    await platform.scale_to(3)
    clock.move_to(60.0)
    cluster.tell(ready=[A, B], starting=1)
    await until(lambda: platform._inquiry.report.starting == 1)
    await platform.scale_to(3)
    cluster.tell(ready=[A], starting=0)  # a job was lost, and nobody replaces it
    await until(lambda: platform._inquiry.report.starting == 0)
    await platform.scale_to(3)
    await until(lambda: cluster.scaled == [3, 3])


async def test_a_command_knows_which_replicas_are_busy(cluster, running):
    listener = FakeReplicaListener()
    listener.busy = {A: 2}
    busy = cluster.folder / "busy"
    platform = await running(
        sh(f'printf %s "$AUTOSCALER_BUSY $WHERE" > {shlex.quote(str(busy))}; # {{replicas}}'),
        listener=listener,
        env={"WHERE": "here"},
    )
    await platform.scale_to(2)
    await until(lambda: platform._done == 2)
    assert busy.read_text() == json.dumps({A: 2}) + " here"


async def test_it_cannot_be_asked_after_stop(running):
    platform = await running()
    await platform.stop()
    with pytest.raises(PlatformUnavailable):
        await platform.scale_to(1)


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"scale": ()}, "scale is empty"),
        ({"scale": ("scale.sh",)}, "scale has no {replicas}"),
        ({"status": ("",)}, "status is empty"),
        ({"urls": ()}, "nothing says where the replicas are"),
        ({"timeout": 0.0}, "need timeout > 0 s"),
        ({"retry_max": 0.1}, "need retry_max >= retry_initial"),
    ],
)
def test_what_cannot_work_is_refused(tmp_path, given, complaint):
    fleet = RemoteFleetOptions(state_dir=tmp_path, urls=given.pop("urls", (A,)))
    with pytest.raises(ValueError) as refusal:
        ExecOptions(**{"pool": "chat", "scale": ("s", "{replicas}"), "fleet": fleet, **given})
    assert complaint in str(refusal.value)


def test_commands_that_are_not_there_are_found_before_they_are_run(tmp_path):
    fleet = RemoteFleetOptions(state_dir=tmp_path)
    options = ExecOptions("chat", ("./scale.sh", "{replicas}"), fleet, ("no-such-program",), cwd=tmp_path)
    assert [problem.split(":")[0] for problem in command_problems(options)] == ["scale", "status"]
    (tmp_path / "scale.sh").write_text("#!/bin/sh\n")
    (tmp_path / "scale.sh").chmod(0o755)
    assert [problem.split(":")[0] for problem in command_problems(options)] == ["status"]
