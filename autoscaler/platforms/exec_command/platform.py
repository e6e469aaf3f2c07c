"""The platform `exec`: commands of the user's own start, stop and list the replicas: Slurm, a cloud's CLI.

`scale` is run with the number that is wanted until it exits with 0; never two runs at once, and always with
the newest number, so what was wanted in between is not made up for. `status`, run now and then, prints the
fleet (see `remote_fleet.report`). What an exit code means:

    0        done: the replicas are ordered, or the fleet is printed
    75       not now, such as a queue that is closed (EX_TEMPFAIL); run again, without a fuss
    others   failed; run again, and told with the last line of standard error

The slots in use are in the environment as `AUTOSCALER_BUSY`, JSON by replica, so that idle ones can go first.
"""

import asyncio
import json
from collections.abc import Callable, Mapping
from functools import partial
from random import Random

import structlog

from autoscaler.clock import SystemClock
from autoscaler.domain import Fleet
from autoscaler.errors import PlatformUnavailable
from autoscaler.platforms.exec_command.command import TRY_LATER, run_command
from autoscaler.platforms.exec_command.options import ExecOptions
from autoscaler.ports import Clock, ModelServer, ReplicaListener
from autoscaler.remote_fleet import (
    REPORT_BYTES_MAX,
    FleetReport,
    Inquiry,
    Pauses,
    RemoteFleet,
    fault_of,
    read_report,
)

_BUSY_BYTES_MAX = 100_000
"""Of `AUTOSCALER_BUSY` [bytes]: Linux takes 128 KiB for one variable, and starts no command with more."""

_REFUSED_AFTER = 2
"""What `scale` failed to do so many times in a row is not counted on [1]."""

log = structlog.get_logger(__name__)


class ExecCommand:
    """Replicas of one pool that commands start and stop.

    Parameters
    ----------
    options : ExecOptions
        The commands, and where the replicas are found.
    server : ModelServer
        How a replica is asked whether it can serve.
    clock : Clock or None
        The time; None is the machine's.
    rng : Random or None
        For the pauses between attempts; None draws a seed of its own.
    """

    def __init__(
        self,
        options: ExecOptions,
        server: ModelServer,
        clock: Clock | None = None,
        rng: Random | None = None,
    ) -> None:
        self._options = options
        self._clock = clock or SystemClock()
        self._fleet = RemoteFleet(options.fleet, server, self._clock)
        self._one_at_a_time = asyncio.Lock()
        ask, interval = partial(ask_status, options, self._one_at_a_time), options.status_interval
        self._inquiry = (
            Inquiry(options.pool, self._fleet, ask, interval, self._clock) if options.status else None
        )
        self._pauses = Pauses(options.retry_initial, options.retry_max, rng or Random())
        self._wish: int | None = None
        self._may_act: Callable[[], bool] = lambda: True
        self._done: int | None = None
        self._done_at = 0.0
        self._changed = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._scale_error: str | None = None
        self._failed_in_a_row = 0

    def __repr__(self) -> str:
        return f"<ExecCommand desired={self._wish} done={self._done} {self._fleet!r}>"

    @property
    def last_error(self) -> str | None:
        """Why the newest wish is not carried out, or the fleet not told, for a person; else None."""
        return self._scale_error or (None if self._inquiry is None else self._inquiry.trouble)

    async def start(self, listener: ReplicaListener) -> None:
        """Run `status` once, report who is there, and keep reporting."""
        if self._inquiry is not None:
            await self._inquiry.once()
            asking, name = self._inquiry.now_and_then(), f"status of {self._options.pool}"
            self._tasks.append(asyncio.create_task(asking, name=name))
        await self._fleet.start(listener)
        self._tasks.append(asyncio.create_task(self._carry_out(), name=f"scale {self._options.pool}"))

    async def fleet(self) -> Fleet:
        """Count the replicas. Raises PlatformUnavailable if `status`, which should tell, fails."""
        if (fault := fault_of(self._tasks)) is not None:
            raise PlatformUnavailable(fault)
        if self._inquiry is not None:
            self._inquiry.check()
        return self._fleet.count()

    async def look_anew(self) -> None:
        """Ask now, if anybody tells. Raises PlatformUnavailable if `status`, which should tell, fails."""
        if self._inquiry is not None:
            await self._inquiry.look_anew()

    async def scale_to(self, replicas: int) -> None:
        """Note the wish; the command is run soon. Idempotent, returns at once.

        What fails is told by `last_error` and the log, and tried again. Raises PlatformUnavailable before
        `start` and after `stop`.
        """
        self._fleet.check_wish(replicas)
        self._fleet.wanted(replicas)
        self._wish = replicas
        if replicas == self._done and self._is_not_as_told():
            log.info("fleet is not as wanted; scaling again", pool=self._options.pool, desired=replicas)
            self._done = None
        if replicas != self._done:
            self._changed.set()

    @property
    def listed(self) -> set[str]:
        """Ids of all that are listed, whether they answer or not; as in `ports.ListsReplicas`."""
        return self._fleet.listed

    def act_while(self, may_act: Callable[[], bool]) -> None:
        """Begin no run of `scale` when `may_act` says no; as in `ports.ActsLater`."""
        self._may_act = may_act

    def stand_by(self) -> None:
        """Run `scale` no more, for it would contradict whoever asks from now on; one that runs may end."""
        self._wish = self._done = None
        self._failed_in_a_row = 0
        self._fleet.stand_by()

    async def stop(self) -> None:
        """End the watching, and a command that runs; the replicas run on."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._fleet.stop()

    def _is_not_as_told(self) -> bool:
        """Whether `status` counts another fleet than was ordered, long enough ago to have come about."""
        report = None if self._inquiry is None else self._inquiry.report
        if report is None or report.starting is None or self._done is None:
            return False
        told_long_ago = self._clock.now() - self._done_at >= self._options.retry_max
        return told_long_ago and self._fleet.ordered != self._done

    async def _carry_out(self) -> None:
        """Bring the fleet to the newest wish, for ever."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            while self._wish is not None and self._wish != self._done:
                async with self._one_at_a_time:
                    if not self._may_act():
                        self.stand_by()
                    wish = self._wish  # may have changed while `status` ran
                    if wish is None:
                        break
                    is_done = await self._scale(wish)
                if is_done:
                    self._done = None if self._wish is None else wish  # whoever stands by has done nothing
                    self._done_at = self._clock.now()
                    self._pauses.reset()
                    self._failed_in_a_row = 0
                    if self._inquiry is not None:
                        self._inquiry.hurry()
                else:
                    self._failed_in_a_row += 1
                self._fleet.refused(is_so=self._failed_in_a_row >= _REFUSED_AFTER)
                if self._failed_in_a_row:
                    await asyncio.sleep(self._pauses.next())
            if self._wish is None:
                self._scale_error = None

    async def _scale(self, replicas: int) -> bool:
        """Run `scale` once; whether it did what it should."""
        words = self._options.words_to_scale(replicas)
        try:
            code, errors = await self._run_scale(words)
        except PlatformUnavailable as error:
            self._say_scale(str(error))
            return False
        if code == 0:
            log.info("scaled", pool=self._options.pool, desired=replicas)
            self._scale_error = None
            return True
        if code == TRY_LATER:
            log.info("cannot scale now; run again later", pool=self._options.pool, said=errors)
            self._scale_error = f"{words[0]} asks to be run later: {errors}".rstrip(": ")
        else:
            self._say_scale(_how_it_ended(words[0], code, errors))
        return False

    async def _run_scale(self, words: list[str]) -> tuple[int, str]:
        environment = {
            **self._options.environment,
            "AUTOSCALER_BUSY": busy_as_json(self._fleet.busy_slots()),
        }
        ran = await run_command(words, environment, self._options.cwd, self._options.timeout, 0)
        return ran.code, ran.errors

    def _say_scale(self, why: str) -> None:
        """Tell a new failure loudly, a repeated one softly."""
        tell = log.debug if why == self._scale_error else log.warning
        tell("scaling failed; tried again", pool=self._options.pool, why=why)
        self._scale_error = why


async def ask_status(options: ExecOptions, one_at_a_time: asyncio.Lock) -> FleetReport:
    """Run `status` once. Raises PlatformUnavailable if it does not tell the fleet."""
    words = options.words_of_status
    async with one_at_a_time:
        ran = await run_command(words, options.environment, options.cwd, options.timeout, REPORT_BYTES_MAX)
    if ran.code != 0:
        raise PlatformUnavailable(_how_it_ended(words[0], ran.code, ran.errors))
    try:
        return read_report(ran.output, options.fleet.grpc_target)
    except ValueError as error:
        raise PlatformUnavailable(f"{words[0]}: {error}") from error


def busy_as_json(busy: Mapping[str, int]) -> str:
    """Return the slots in use by replica as JSON: the busiest, if there are too many to be told of."""
    told, length = {}, 2
    for replica, slots in sorted(busy.items(), key=lambda each: each[1], reverse=True):
        length += len(json.dumps({replica: slots}))
        if not slots or length > _BUSY_BYTES_MAX:
            break
        told[replica] = slots
    return json.dumps(told)


def _how_it_ended(program: str, code: int, errors: str) -> str:
    how = f"was ended by signal {-code}" if code < 0 else f"exited with {code}"
    return f"{program} {how}, saying: {errors}" if errors else f"{program} {how}"
