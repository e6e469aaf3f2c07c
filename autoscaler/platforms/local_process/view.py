"""What eyes are shown of local replicas; the admin listener and the dashboard read it."""

from dataclasses import dataclass

from autoscaler.platforms.local_process.supervisor import Supervisor


@dataclass(frozen=True, slots=True)
class ReplicaView:
    """One place of the fleet.

    Attributes
    ----------
    id, state : str
        Of the replica; between two replicas, of the place.
    url, pid, gpu : str, int, str, or None
        Where it listens, its first process, its GPU; None if it has none.
    started_at, ready_at : float or None
        Calendar time [s since the epoch].
    restarts : int
        Times the place was filled again after a failure [1].
    """

    id: str
    state: str
    restarts: int
    url: str | None = None
    pid: int | None = None
    gpu: str | None = None
    started_at: float | None = None
    ready_at: float | None = None


def view_of(supervisor: Supervisor) -> ReplicaView:
    """Return what is to be seen of one place now."""
    state = supervisor.state.value
    if supervisor.process is None:
        return ReplicaView(f"replica-{supervisor.place}", state, supervisor.restarts)
    record = supervisor.process.record
    return ReplicaView(
        id=record.id,
        state=state,
        restarts=supervisor.restarts,
        url=supervisor.process.url,
        pid=record.pid,
        gpu=record.gpu or None,
        started_at=record.started_at,
        ready_at=record.ready_at,
    )
