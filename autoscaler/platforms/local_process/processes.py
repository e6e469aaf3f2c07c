"""Processes of this machine: which ones belong to a replica, and how all of them are ended.

A replica is more than the process that was started: servers fork workers, and a leader may die before
them. Three signs tell whose a process is:

- its number and start time, which make the leader unmistakable, also to the next program;
- a tag in its environment, which every descendant inherits (some servers overwrite it with a title);
- its session, which the leader opened, as long as no stranger has taken the leader's number.

Numbers of dead processes are given to new ones, so no signal is sent to a bare number: `psutil.Process`
compares the start time first.
"""

import asyncio
import os
import signal
from collections import defaultdict
from collections.abc import Iterable, Iterator

import psutil

TAG = "AUTOSCALER_REPLICA"
"""Environment variable that names the replica a process belongs to, as owner:id."""

KILL_ROUNDS = 100
"""Looks for survivors after SIGKILL; with the pause between them about five seconds."""
POLL_INTERVAL = 0.05
"""Between two looks at processes that are not our children, which nobody reports to us [s]."""


def tag_of(owner: str, replica_id: str) -> str:
    """Return the value of the tag for the processes of one replica."""
    return f"{owner}:{replica_id}"


def started_since_boot(process: psutil.Process) -> float:
    """Return its start [s since boot], which unlike calendar time does not change when the clock is set."""
    return round(process.create_time() - psutil.boot_time(), 2)


def find_process(pid: int | None, pid_started: float | None) -> psutil.Process | None:
    """Return the living process of this number *and* start time; None if it is gone."""
    if pid is None or pid_started is None:
        return None
    try:
        process = psutil.Process(pid)
        same = abs(started_since_boot(process) - pid_started) < 0.05
    except psutil.Error:
        return None
    return process if same and is_alive(process) else None


def is_alive(process: psutil.Process) -> bool:
    """Whether it still runs; a zombie does not, it only waits for its parent to look."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def tagged_replicas(owner: str) -> dict[str, list[psutil.Process]]:
    """Return the living processes that carry a tag of `owner`, by replica id."""
    found: dict[str, list[psutil.Process]] = defaultdict(list)
    for process in _other_processes():
        tag_owner, _, replica_id = _tag(process).partition(":")
        if tag_owner == owner and is_alive(process):
            found[replica_id].append(process)
    return dict(found)


def family_of(tag: str, leader: psutil.Process | None) -> list[psutil.Process]:
    """Return the living processes of one replica; `leader` may be dead, or None if it was never known."""
    session = None
    if leader is not None and (leader.is_running() or not psutil.pid_exists(leader.pid)):
        session = leader.pid
    return [
        process
        for process in _other_processes()
        if (process == leader or _tag(process) == tag or (session and _session(process) == session))
        and is_alive(process)
    ]


async def end_family(tag: str, leader: psutil.Process | None, grace: float) -> bool:
    """End every process of a replica: SIGTERM, SIGKILL after `grace` [s], until none is left.

    If it is cancelled, the grace is over at once. Returns False if some process outlived even SIGKILL
    (it waits inside the kernel, for a disk or a driver).
    """
    try:
        family = await asyncio.to_thread(family_of, tag, leader)
        _send(family, signal.SIGTERM)
        await _until_dead(family, grace)
    finally:
        is_gone = await _kill_family(tag, leader)
    return is_gone


async def _until_dead(family: list[psutil.Process], grace: float) -> None:
    deadline = asyncio.get_running_loop().time() + grace
    while any(map(is_alive, family)) and asyncio.get_running_loop().time() < deadline:  # noqa: ASYNC110 - nobody reports it
        await asyncio.sleep(POLL_INTERVAL)


async def _kill_family(tag: str, leader: psutil.Process | None) -> bool:
    # Looked for anew each time: a process may have forked between the look and the signal.
    for _ in range(KILL_ROUNDS):
        family = await asyncio.to_thread(family_of, tag, leader)
        if not family:
            return True
        _send(family, signal.SIGKILL)
        await asyncio.sleep(POLL_INTERVAL)
    return False


def _send(family: Iterable[psutil.Process], number: signal.Signals) -> None:
    for process in family:
        try:
            process.send_signal(number)
        except psutil.Error:  # gone meanwhile, or its number is somebody else's now
            continue


def _other_processes() -> Iterator[psutil.Process]:
    for pid in psutil.pids():
        if pid in (0, os.getpid()):
            continue
        try:
            yield psutil.Process(pid)
        except psutil.Error:
            continue


def _tag(process: psutil.Process) -> str:
    try:
        return process.environ().get(TAG, "")
    except (psutil.Error, OSError):  # gone, or not ours to read
        return ""


def _session(process: psutil.Process) -> int | None:
    try:
        return os.getsid(process.pid)
    except OSError:
        return None
