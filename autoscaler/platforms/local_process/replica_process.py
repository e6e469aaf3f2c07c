"""One incarnation of a replica as processes: started or adopted, watched for its exit, ended whole."""

import asyncio
import os
import signal
from dataclasses import replace
from subprocess import DEVNULL, STDOUT

import psutil

from autoscaler.errors import ReplicaFailed
from autoscaler.platforms.local_process import processes
from autoscaler.platforms.local_process.gpu_places import held_on
from autoscaler.platforms.local_process.options import HOST, LocalOptions
from autoscaler.platforms.local_process.records import Records, ReplicaRecord
from autoscaler.platforms.local_process.replica_log import ReplicaLog


class ReplicaProcess:
    """The processes of one replica, from its record to the end of the last of them.

    Whoever makes one owns its ending: `end` must follow, also if `start` failed or was cancelled.
    """

    def __init__(self, record: ReplicaRecord, records: Records, cores: frozenset[int] = frozenset()) -> None:
        self.record = record
        self._records = records
        self._cores = cores
        self._tag = processes.tag_of(records.owner, record.id)
        self._leader = processes.find_process(record.pid, record.pid_started)
        self._child: asyncio.subprocess.Process | None = None
        self.is_adopted = self._leader is not None
        self.url = f"http://{HOST}:{record.port}"
        self.grpc_target = f"{HOST}:{record.grpc_port}" if record.grpc_port else None

    @property
    def is_alive(self) -> bool:
        """Whether its leader runs."""
        return self._leader is not None and processes.is_alive(self._leader)

    async def start(self, options: LocalOptions, log: ReplicaLog) -> None:
        """Start the command in a session of its own. Raises ReplicaFailed if there is nothing to start."""
        record = self.record
        words = held_on(self._cores, options.render_command(record.port, record.gpu, record.grpc_port))
        env = options.render_env(record.port, record.gpu, record.grpc_port) | {processes.TAG: self._tag}
        self._records.write(record)
        output = log.open_fresh()
        try:
            self._child = await asyncio.create_subprocess_exec(
                *words,
                env=env,
                cwd=options.cwd,
                stdin=DEVNULL,
                stdout=output,
                stderr=STDOUT,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:  # ValueError: a null byte in a word
            raise ReplicaFailed(f"{words[0]} cannot be started: {error}; correct command or cwd") from error
        finally:
            os.close(output)
        self._identify(self._child.pid)

    async def exited(self) -> str:
        """Wait until the leader has ended; say how."""
        if self._child is not None:
            return _exit_in_words(await self._child.wait())
        while self.is_alive:  # noqa: ASYNC110 - not our child, so nobody reports it
            await asyncio.sleep(processes.POLL_INTERVAL)
        return "ended (its exit code is not known: an earlier run of this program started it)"

    def mark_ready(self, wall_time: float) -> None:
        """Note in the record that it was ready first at `wall_time` [s since the epoch]."""
        if self.record.ready_at is None:
            self.record = replace(self.record, ready_at=wall_time)
            self._records.write(self.record)

    async def end(self, grace: float) -> bool:
        """End all its processes, SIGKILL `grace` [s] after SIGTERM, and forget it; False if one is left."""
        is_gone = await processes.end_family(self._tag, self._leader, grace)
        if is_gone:
            self._records.remove(self.record.id)
        return is_gone

    def _identify(self, pid: int) -> None:
        try:
            self._leader = psutil.Process(pid)
            pid_started = processes.started_since_boot(self._leader)
        except psutil.Error:  # it has ended already; `exited` tells
            return
        self.record = replace(self.record, pid=pid, pid_started=pid_started)
        self._records.write(self.record)


def _exit_in_words(code: int) -> str:
    if code >= 0:
        return f"exited with code {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"
