"""Keeps one place of the fleet filled: starts a replica, watches it, starts it again after a failure.

    STARTING ──ready──▶ READY ──drain──▶ DRAINING ──idle, or drain_max──▶ STOPPING ──▶ gone
     ▲ ▲  │               │ ▲               │  │                             ▲
     │ │  └─failed─┐      │ └──take back────┘  ├──────────failed─────────────┤
     │ │           ▼      │                    │                             │
     │ └────── BACKING_OFF ◀─failed            │     end (from any state) ───┘
     └──wake──────── ASLEEP ◀──────────────────┘ idle, and may sleep

One task is the whole life of the place. To end it is to cancel that task: wherever it stands, its
`finally` ends the processes and reports the replica lost. Draining, falling asleep and waking run beside it,
one after the other; what goes wrong there cancels it.
"""

import asyncio

import structlog

from autoscaler.errors import ReplicaFailed
from autoscaler.platforms.local_process.back_off import BackOff
from autoscaler.platforms.local_process.fleet_plan import Member, State
from autoscaler.platforms.local_process.replica_log import ReplicaLog
from autoscaler.platforms.local_process.replica_process import ReplicaProcess
from autoscaler.platforms.local_process.surroundings import Surroundings
from autoscaler.platforms.local_process.watch import Watch
from autoscaler.ports import Replica, Sleeps

DRAIN_POLL_INTERVAL = 0.1
"""Between two looks at the slots of a draining replica [s]."""

log = structlog.get_logger(__name__)


class Supervisor:
    """One place of the fleet, and whatever replica fills it.

    Parameters
    ----------
    place : int
        Its number.
    around : Surroundings
        What it shares with the other places.
    adopted : ReplicaProcess or None
        A replica of an earlier run that fills it already; None starts one.
    """

    def __init__(self, place: int, around: Surroundings, adopted: ReplicaProcess | None = None) -> None:
        self.place = place
        self.state = State.STARTING
        self.restarts = 0
        self.last_error: str | None = None
        self.process: ReplicaProcess | None = adopted
        self._around = around
        self._log = ReplicaLog(around.options.logs, place, around.options.log_bytes_max)
        self._back_off = BackOff(around.options.restart_backoff_initial, around.options.restart_backoff_max)
        self._ordered_at = around.clock.now()
        self._ready_at: float | None = None
        self._aside: asyncio.Task[None] | None = None
        """Drains it, puts it to sleep, or wakes it."""
        self._probed = asyncio.Event()
        self.life = asyncio.create_task(self._live(adopted), name=f"replica in place {place}")

    def __repr__(self) -> str:
        return f"<Supervisor place={self.place} {self.state} restarts={self.restarts}>"

    def member(self) -> Member:
        """Return what the plan of the fleet must know of it."""
        return Member(self.place, self.state, self._busy_slots(), self._around.clock.now() - self._ordered_at)

    async def probed(self) -> None:
        """Wait until its first replica was probed once and, if it answered, reported; or until it failed."""
        await self._probed.wait()

    def leave(self) -> None:
        """End it without loss: a ready one drains first, any other ends at once."""
        if self.state is not State.READY or self.process is None:
            self.end()
            return
        self.state = State.DRAINING
        log.info("replica drains", replica=self.process.record.id)
        self._around.listener.replica_draining(self.process.record.id)
        self._aside = asyncio.create_task(self._end_when_idle(self.process))

    def take_back(self) -> None:
        """Undo `leave` of one that still drains."""
        if self.state is not State.DRAINING or self.process is None or self._aside is None:
            return
        self._aside.cancel()
        self.state = State.READY
        log.info("replica is taken back from draining", replica=self.process.record.id)
        self._around.listener.replica_ready(self._as_replica(self.process))

    def wake(self) -> None:
        """Have one that sleeps ready again."""
        if self.state is not State.ASLEEP or self.process is None or self._around.sleeper is None:
            return
        self.state, self._ordered_at = State.STARTING, self._around.clock.now()
        self._aside = asyncio.create_task(self._wake_up(self.process, self._around.sleeper, self._aside))

    def end(self) -> None:
        """End it now, whatever it holds: SIGTERM, then SIGKILL; `life` is over when all is gone."""
        if self.state is State.STOPPING:
            return
        self.state = State.STOPPING
        # One turn later, so that the task has begun, and its `finally` holds.
        asyncio.get_running_loop().call_soon(self.life.cancel)

    async def _live(self, process: ReplicaProcess | None) -> None:
        while True:
            pause = await self._incarnate(process or self._around.new_process(self.place))
            if self.state is not State.BACKING_OFF:
                return
            await asyncio.sleep(pause)
            self.restarts += 1
            self.state, process = State.STARTING, None

    async def _incarnate(self, process: ReplicaProcess) -> float:
        """One replica, from its start to the end of its last process; the pause before the next [s]."""
        self.process, self._ready_at, pause = process, None, 0.0
        async with self._log.kept_short():
            try:
                await self._run(process)
            except Exception as failure:  # whatever it is, this place heals and the others go on
                pause = self._failed(process, failure)
            finally:
                self._withdraw(process)
                if not await process.end(self._around.options.stop_grace):
                    log.error("processes of the replica survive SIGKILL", replica=process.record.id)
                self.process = None
        return pause

    async def _run(self, process: ReplicaProcess) -> None:
        around, began = self._around, self._around.clock.now()
        if not process.is_adopted:
            await process.start(around.options, self._log)
        watch = Watch(process, around.options, around.server, around.clock, self._probed.set)
        await watch.until_ready()
        if not process.is_adopted:
            around.cold_starts.measured(around.clock.now() - began)
        if process.is_adopted and around.sleeper is not None and await around.sleeper.is_asleep(process.url):
            self._found_asleep(process)
        else:
            self._now_ready(process)
        await watch.until_failed(self._excuses)

    def _now_ready(self, process: ReplicaProcess) -> None:
        if self.state is not State.STARTING:  # its end was asked for while the answer was on its way
            return
        self.state, self.last_error, self._ready_at = State.READY, None, self._around.clock.now()
        process.mark_ready(self._around.clock.wall_time())
        log.info(
            "replica is ready", replica=process.record.id, gpu=process.record.gpu, port=process.record.port
        )
        self._around.listener.replica_ready(self._as_replica(process))
        self._probed.set()

    def _found_asleep(self, process: ReplicaProcess) -> None:
        """An earlier run put it to sleep."""
        if not self._around.may_sleep():
            self.end()
        elif self.state is State.STARTING:
            self.state = State.ASLEEP
            log.info("replica is found asleep", replica=process.record.id)
        self._probed.set()

    def _withdraw(self, process: ReplicaProcess) -> None:
        """Before the processes end: nobody sends to it any more, nobody waits for its first probe."""
        self._probed.set()
        if self._aside is not None:
            self._aside.cancel()
        self.state = State.BACKING_OFF if self.state in (State.STARTING, State.READY) else State.STOPPING
        if self._ready_at is not None:
            self._around.listener.replica_lost(process.record.id)

    def _failed(self, process: ReplicaProcess, failure: Exception) -> float:
        """Tell loudly what happened; return the pause before the next start [s]."""
        ready_for = self._around.clock.now() - self._ready_at if self._ready_at is not None else 0.0
        pause = self._back_off.after_failure(ready_for)
        when = "before it was ready" if self._ready_at is None else f"after {ready_for:.3g} s of readiness"
        when = "asleep" if self.state is State.ASLEEP else when
        lines = self._log.last_lines()
        printed = f"; last lines of {self._log.path}: {' | '.join(lines)}" if lines else ""
        self.last_error = f"{process.record.id} {failure}, {when}{printed}"
        log.error(
            "replica failed",
            replica=process.record.id,
            why=f"{failure}, {when}",
            log_file=str(self._log.path),
            last_lines=lines,
            pause=pause,
            exc_info=None if isinstance(failure, ReplicaFailed) else failure,
        )
        return pause

    async def _end_when_idle(self, process: ReplicaProcess) -> None:
        drain_max = self._around.options.drain_max
        deadline = self._around.clock.now() + drain_max
        # The ledger is read, it does not report.
        while (busy := self._busy_slots()) and self._around.clock.now() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(DRAIN_POLL_INTERVAL)
        if busy:
            log.warning("replica ends with requests on it", place=self.place, busy=busy, drain_max=drain_max)
        if not busy and self._around.sleeper is not None and self._around.may_sleep():
            await self._fall_asleep(process, self._around.sleeper)
        else:
            self.end()

    async def _fall_asleep(self, process: ReplicaProcess, sleeper: Sleeps) -> None:
        # Before it sleeps: nobody may take it back, or send to it, from here on.
        self.state, self._ready_at = State.ASLEEP, None
        self._around.listener.replica_lost(process.record.id)
        if await sleeper.sleep(process.url):
            log.info("replica sleeps", replica=process.record.id)
        else:
            log.warning("replica does not go to sleep, so it ends", replica=process.record.id)
            self.end()

    async def _wake_up(
        self, process: ReplicaProcess, sleeper: Sleeps, falls_asleep: asyncio.Task[None] | None
    ) -> None:
        around, began = self._around, self._around.clock.now()
        if falls_asleep is not None:
            await falls_asleep
        if self.state is not State.STARTING:  # it did not fall asleep, and ends
            return
        try:
            if not await sleeper.wake(process.url):
                raise ReplicaFailed("refuses to wake")
            # It says when it is awake, and is ready then; to be sure it is asked like one that starts.
            await Watch(process, around.options, around.server, around.clock, lambda: None).until_ready()
        except ReplicaFailed as failure:
            log.warning("replica does not wake, so it ends", replica=process.record.id, why=str(failure))
            self.end()
        else:
            around.wakes.measured(around.clock.now() - began)
            self._now_ready(process)

    def _excuses(self) -> int:
        """What may keep it from answering probes: requests, or moving its weights [1]."""
        return self._busy_slots() + (self.state is not State.READY)

    def _busy_slots(self) -> int:
        if self.process is None:
            return 0
        return self._around.listener.busy_slots().get(self.process.record.id, 0)

    def _as_replica(self, process: ReplicaProcess) -> Replica:
        return Replica(
            process.record.id, process.url, self._around.options.slots_per_replica, process.grpc_target
        )
