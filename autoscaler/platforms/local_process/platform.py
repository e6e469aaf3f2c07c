"""The platform `local`: replicas are processes of this machine, one in each place of the fleet.

`scale_to` only notes the wish and compares it with the places in use (`fleet_plan`); the places do the
rest by themselves (`supervisor`). Whenever one is free again the comparison is made anew, so a wish that
had to wait for room comes true without being repeated.

At the start, what a killed predecessor left is found by its records and tags (`records`, `processes`).
What is still the configured kind of process is adopted, so a restart at peak changes nothing in the
fleet; everything else is ended before anything new may want its GPU.
"""

import asyncio
import secrets
import socket
from collections.abc import Mapping

import structlog

from autoscaler.clock import SystemClock
from autoscaler.cold_starts import ColdStarts
from autoscaler.domain import Fleet
from autoscaler.errors import PlatformUnavailable
from autoscaler.platforms.local_process import processes
from autoscaler.platforms.local_process.fleet_plan import ORDERED, State, free_place, plan_fleet
from autoscaler.platforms.local_process.gpu_places import cores_of, grouped
from autoscaler.platforms.local_process.options import HOST, LocalOptions
from autoscaler.platforms.local_process.records import Records, ReplicaRecord
from autoscaler.platforms.local_process.replica_process import ReplicaProcess
from autoscaler.platforms.local_process.supervisor import Supervisor
from autoscaler.platforms.local_process.surroundings import Surroundings
from autoscaler.platforms.local_process.view import ReplicaView, view_of
from autoscaler.ports import Clock, ModelServer, ReplicaListener, Sleeps
from autoscaler.topology.read_machine import read_machine

log = structlog.get_logger(__name__)


class LocalProcesses:
    """Replicas of one pool as local processes.

    Parameters
    ----------
    options : LocalOptions
        What to start, where, and how patient to be.
    server : ModelServer
        How a replica is asked whether it can serve.
    clock : Clock or None
        The time; None is the machine's.
    sleeper : Sleeps or None
        How a replica is put to sleep and woken; None if its kind cannot sleep.
    """

    def __init__(
        self,
        options: LocalOptions,
        server: ModelServer,
        clock: Clock | None = None,
        sleeper: Sleeps | None = None,
    ) -> None:
        self._options = options
        self._server = server
        self._clock = clock or SystemClock()
        self._records = Records(options.state_dir)
        self._cold_starts = ColdStarts(options.cold_start_initial, options.state_dir / "cold_starts.json")
        self._wakes = ColdStarts(options.cold_start_initial, options.state_dir / "wakes.json")
        self._sleeper = sleeper
        self._around: Surroundings | None = None
        self._places: dict[int, Supervisor] = {}
        self._cores: Mapping[str, frozenset[int]] = {}
        self._desired = 0

    def __repr__(self) -> str:
        states = [supervisor.state.value for supervisor in self._places.values()]
        return f"<LocalProcesses desired={self._desired} {' '.join(states)}>"

    async def start(self, listener: ReplicaListener) -> None:
        """Adopt or end what a predecessor left; return once all adopted were probed and the others are gone.

        Raises UsageError if the state folder is held by another instance or cannot be written.
        """
        self._records.open()
        await self._place_gpus()
        around = Surroundings(
            self._options,
            self._server,
            listener,
            self._clock,
            self._cold_starts,
            self._new_process,
            self._sleeper,
            self._wakes,
            self._may_sleep,
        )
        found = await asyncio.to_thread(self._find_left)
        strangers = [process for process in found if not self._adopt(around, process)]
        adopted = list(self._places.values())
        await asyncio.gather(
            *(supervisor.probed() for supervisor in adopted),
            *(process.end(self._options.stop_grace) for process in strangers),
        )
        # Only now is known who sleeps; nothing is started in the place of one that ended meanwhile.
        self._around = around
        self._desired = sum(supervisor.state in ORDERED for supervisor in self._places.values())

    async def fleet(self) -> Fleet:
        """Count the replicas: waiting to be restarted is starting, being ended is draining.

        While one sleeps, what a start takes is what waking takes, once that was measured.
        """
        states = [supervisor.state for supervisor in self._places.values()]
        asleep = states.count(State.ASLEEP)
        lead = self._wakes if asleep and self._wakes.is_measured else self._cold_starts
        return Fleet(
            ready=states.count(State.READY),
            starting=states.count(State.STARTING) + states.count(State.BACKING_OFF),
            draining=states.count(State.DRAINING) + states.count(State.STOPPING),
            slots_per_replica=self._options.slots_per_replica,
            cold_start_mean=lead.mean,
            cold_start_p90=lead.p90,
            asleep=asleep,
        )

    async def scale_to(self, replicas: int) -> None:
        """Have `replicas`, ready and starting together, as far as there is room; idempotent, returns at once.

        A replica that cannot be started is no error here: it is told by `last_error` and the log, and tried
        again. Raises PlatformUnavailable before `start` and after `stop`.
        """
        if replicas < 0:
            raise ValueError(f"need replicas >= 0, got {replicas}")
        if self._around is None:
            raise PlatformUnavailable("local replicas cannot be asked for before start or after stop")
        if replicas != self._desired and self._lacks_room(replicas):
            log.warning(
                "there is no room for the replicas wanted", desired=replicas, places=self._options.places
            )
        self._desired = replicas
        self._reconcile()

    async def stop(self) -> None:
        """End every replica, all at the same time; return when their last process is gone."""
        self._around, self._desired = None, 0
        lives = [supervisor.life for supervisor in self._places.values()]
        for supervisor in self._places.values():
            supervisor.end()
        if lives:
            await asyncio.wait(lives)
        self._records.close()

    @property
    def last_error(self) -> str | None:
        """What keeps the fleet from being as wanted now, for a person; None if nothing does."""
        errors = [supervisor.last_error for supervisor in self._places.values() if supervisor.last_error]
        if errors:
            return errors[-1]
        if self._lacks_room(self._desired):
            return (
                f"{self._desired} replicas are wanted but gpus x replicas_per_gpu leave room for "
                f"{self._options.places}; list more gpus, or lower replicas_max"
            )
        return None

    def replicas(self) -> list[ReplicaView]:
        """Return every place in use, for eyes."""
        return [view_of(supervisor) for _, supervisor in sorted(self._places.items())]

    async def _place_gpus(self) -> None:
        """Put GPUs together and find their cores, if there are any; a driver may take its time to answer."""
        if self._options.gpus:
            machine = (await asyncio.to_thread(read_machine, processes.TAG)).machine
            self._options = grouped(self._options, machine)
            self._cores = cores_of(self._options, machine)

    def _may_sleep(self) -> bool:
        """Whether one more may: those that are asked to are counted too, for they hold memory already."""
        asleep = sum(supervisor.state is State.ASLEEP for supervisor in self._places.values())
        return asleep < self._options.sleepers_max

    def _lacks_room(self, replicas: int) -> bool:
        return self._options.places is not None and replicas > self._options.places

    def _reconcile(self) -> None:
        """Bring the places towards the wish, as far as there is room now."""
        if self._around is None:
            return
        members = [supervisor.member() for supervisor in self._places.values()]
        plan = plan_fleet(members, self._desired, self._options.places)
        for place in plan.take_back:
            self._places[place].take_back()
        for place in plan.wake:
            self._places[place].wake()
        for place in plan.end:
            self._places[place].leave()
        for _ in range(plan.start):
            place_found = free_place(self._places, len(self._options.gpus), self._options.replicas_per_gpu)
            if place_found is not None:
                self._fill(self._around, place_found)

    def _fill(self, around: Surroundings, place: int, adopted: ReplicaProcess | None = None) -> None:
        supervisor = self._places[place] = Supervisor(place, around, adopted)
        supervisor.life.add_done_callback(lambda life: self._vacated(place, life))

    def _vacated(self, place: int, life: asyncio.Task[None]) -> None:
        """A life is over: its place is free, and something may have waited for it."""
        del self._places[place]
        if life.cancelled() or not (failure := life.exception()):
            self._reconcile()
            return
        # Nothing a replica does leads here; what does (no descriptors left, say) must not be tried in a loop.
        log.error("supervision of a replica broke", place=place, exc_info=failure)
        life.get_loop().call_later(self._options.restart_backoff_max, self._reconcile)

    def _new_process(self, place: int) -> ReplicaProcess:
        port = self._free_port()
        record = ReplicaRecord(
            id=f"replica-{place}-{secrets.token_hex(3)}",
            place=place,
            gpu=self._options.gpu_of(place),
            port=port,
            grpc_port=self._free_port(port) if self._options.has_grpc_port else 0,
            fingerprint=self._options.fingerprint,
            started_at=self._clock.wall_time(),
        )
        return ReplicaProcess(record, self._records, self._cores.get(record.gpu, frozenset()))

    def _free_port(self, *taken: int) -> int:
        """Return a port that is free, that no starting replica is about to bind, and that is not `taken`."""
        records = [each.process.record for each in self._places.values() if each.process]
        promised = {*taken, *(port for record in records for port in (record.port, record.grpc_port))}
        while True:
            with socket.socket() as probe:
                probe.bind((HOST, 0))
                port = int(probe.getsockname()[1])
            if port not in promised:
                return port

    def _find_left(self) -> list[ReplicaProcess]:
        """Return what a predecessor left, by its records and by the tags of running processes."""
        records = {record.id: record for record in self._records.all()}
        for replica_id in processes.tagged_replicas(self._records.owner):
            # Started, but killed before its identity was kept, or its record was lost: port 0 marks it.
            records.setdefault(replica_id, ReplicaRecord(replica_id, 0, "", 0, "", 0.0))
        return [ReplicaProcess(record, self._records) for record in records.values()]

    def _adopt(self, around: Surroundings, process: ReplicaProcess) -> bool:
        """Take over a replica that is the configured kind of process, if its place and GPU are still ours."""
        record = process.record
        fits = process.is_adopted and record.fingerprint == self._options.fingerprint
        has_place = record.place not in self._places and (
            self._options.places is None or record.place < self._options.places
        )
        if not (fits and has_place and self._options.gpu_of(record.place) == record.gpu):
            log.info("replica of an earlier run is ended", replica=record.id)
            return False
        log.info("replica of an earlier run is adopted", replica=record.id, pid=record.pid, port=record.port)
        self._fill(around, record.place, process)
        return True
