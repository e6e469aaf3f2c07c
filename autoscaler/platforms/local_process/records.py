"""What is kept on disk about each replica, so that a program that was killed leaves none behind unknown.

A record is written before its process is started and completed with the process's identity afterwards.
It is removed when the last process of the replica is gone. What falls between (killed after the fork,
before the identity was written) is found by the tag that every process of a replica carries in its
environment: see `processes.py`.
"""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec
import structlog

from autoscaler.errors import UsageError
from autoscaler.held_folder import HeldFolder
from autoscaler.kept_file import keep

log = structlog.get_logger(__name__)

Natural = Annotated[int, msgspec.Meta(ge=0)]
Port = Annotated[int, msgspec.Meta(ge=0, lt=2**16)]
ProcessId = Annotated[int, msgspec.Meta(gt=0, lt=2**31)]


@dataclass(frozen=True, slots=True)
class ReplicaRecord:
    """One incarnation of a replica.

    Attributes
    ----------
    id : str
        Unique, also over restarts of the program.
    place, gpu, port : int, str, int
        Its place in the fleet, its GPU (empty if none), its port on the loopback.
    fingerprint : str
        Of the options it was started with; another one means another kind of process.
    started_at : float
        Calendar time [s since the epoch].
    pid, pid_started : int, float, or None
        Its first process, with its start in seconds since boot, which tells it from a later one of the
        same number; None until there is one.
    ready_at : float or None
        Calendar time at which it was first ready [s since the epoch].
    grpc_port : int
        Its port for gRPC on the loopback; 0 if it has none.
    """

    id: str
    place: Natural
    gpu: str
    port: Port
    fingerprint: str
    started_at: float
    pid: ProcessId | None = None
    pid_started: float | None = None
    ready_at: float | None = None
    grpc_port: Port = 0


class Records:
    """The records of one pool: a JSON file a replica, in a folder that one program holds at a time."""

    def __init__(self, state_dir: Path) -> None:
        self._state_dir = state_dir
        self._folder = state_dir / "replicas"
        self._held = HeldFolder(state_dir)
        # Of the folder's name, not kept inside it: replicas are found even if the folder was deleted.
        self.owner = hashlib.sha256(os.fsencode(state_dir.resolve())).hexdigest()[:16]

    def open(self) -> None:
        """Take hold of the folder. Raises UsageError if another program holds it, or it cannot be written."""
        self._held.take()
        try:
            self._folder.mkdir(exist_ok=True)
        except OSError as error:
            self.close()
            raise UsageError(
                f"state folder {self._state_dir} cannot be used ({error.strerror}); name one you can write to"
            ) from error

    def close(self) -> None:
        """Let go of the folder."""
        self._held.release()

    def all(self) -> list[ReplicaRecord]:
        """Return every record that can be read; one that cannot is dropped, its processes carry the tag.

        What is no file at all, but has the name of one, is left where it is.
        """
        records = []
        for path in sorted(self._folder.glob("*.json")):
            if not path.is_file():
                log.warning("has the name of a replica record but is no file; it is ignored", path=str(path))
                continue
            try:
                records.append(_read(path))
            except (OSError, ValueError, RecursionError) as error:
                log.warning("replica record cannot be read and is dropped", path=str(path), error=str(error))
                _drop(path)
        return records

    def write(self, record: ReplicaRecord) -> None:
        """Keep `record`, in place of an earlier one of the same replica."""
        keep(self._path(record.id), msgspec.json.encode(record))

    def remove(self, replica_id: str) -> None:
        """Forget a replica."""
        _drop(self._path(replica_id))

    def _path(self, replica_id: str) -> Path:
        return self._folder / f"{replica_id}.json"


def _read(path: Path) -> ReplicaRecord:
    record = msgspec.json.decode(path.read_bytes(), type=ReplicaRecord)
    if record.id != path.stem:  # its file would never be found again by its id
        raise ValueError(f"it is of {record.id!r}, another replica than its name says")
    return record


def _drop(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        log.warning("replica record cannot be removed", path=str(path), error=str(error))
