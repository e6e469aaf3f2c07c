"""The platform `webhook`: each change of the number of replicas is posted to a URL, as a CloudEvent.

Every change is delivered once, in order, and never two at a time: an event is sent until it is accepted, and
only then the next one. So a receiver that was away is told all that it missed, and ends at the newest number.
An event that is declined for good is given up; the control loop's next wish, which comes every interval,
makes a new one.

Where the replicas are is found by a list of URLs or a DNS name, or told by the receiver: in its answers to a
question that is asked now and then (`status_url`), and by then also in those to events.
"""

import asyncio
from collections.abc import Callable
from random import Random

import structlog

from autoscaler.clock import SystemClock
from autoscaler.domain import Fleet
from autoscaler.errors import PlatformUnavailable, UsageError
from autoscaler.platforms.webhook.options import WebhookOptions
from autoscaler.platforms.webhook.outbox import Outbox, ScaleEvent
from autoscaler.platforms.webhook.receiver import Accepted, Declined, Failed, Outcome, Receiver
from autoscaler.platforms.webhook.signature import read_secrets, signature_headers
from autoscaler.ports import Clock, ModelServer, ReplicaListener
from autoscaler.remote_fleet import Inquiry, Pauses, RemoteFleet, fault_of

log = structlog.get_logger(__name__)


class Webhook:
    """Replicas of one pool that a receiver of events runs.

    Parameters
    ----------
    options : WebhookOptions
        Whom to tell, and where the replicas are found.
    server : ModelServer
        How a replica is asked whether it can serve.
    clock : Clock or None
        The time; None is the machine's.
    rng : Random or None
        For the pauses between attempts; None draws a seed of its own.
    """

    def __init__(
        self,
        options: WebhookOptions,
        server: ModelServer,
        clock: Clock | None = None,
        rng: Random | None = None,
    ) -> None:
        self._options = options
        self._clock = clock or SystemClock()
        self._fleet = RemoteFleet(options.fleet, server, self._clock)
        self._receiver = Receiver(options)
        ask, interval = self._receiver.status, options.status_interval
        asks = options.status_url is not None
        self._inquiry = Inquiry(options.pool, self._fleet, ask, interval, self._clock) if asks else None
        self._outbox = Outbox(options.fleet.state_dir / "outbox.json")
        self._pauses = Pauses(options.retry_initial, options.retry_max, rng or Random())
        self._newest: int | None = None
        self._may_act: Callable[[], bool] = lambda: True
        self._has_work = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._event_error: str | None = None

    def __repr__(self) -> str:
        return f"<Webhook desired={self._newest} {self._outbox!r} {self._fleet!r}>"

    @property
    def last_error(self) -> str | None:
        """Why the newest event is not delivered, or nobody tells who is there, for a person; else None."""
        return self._event_error or (None if self._inquiry is None else self._inquiry.trouble)

    async def start(self, listener: ReplicaListener) -> None:
        """Ask once who is there, and report them.

        Raises UsageError if the secrets cannot be read.
        """
        self._secrets()
        if self._inquiry is not None:
            await self._inquiry.once()
            asking, name = self._inquiry.now_and_then(), f"status of {self._options.pool}"
            self._tasks.append(asyncio.create_task(asking, name=name))
        await self._fleet.start(listener)
        self._tasks.append(asyncio.create_task(self._deliver(), name=f"web hook {self._options.pool}"))

    async def fleet(self) -> Fleet:
        """Count the replicas. Raises PlatformUnavailable if the receiver, who should tell, does not."""
        if (fault := fault_of(self._tasks)) is not None:
            raise PlatformUnavailable(fault)
        if self._inquiry is not None:
            self._inquiry.check()
        return self._fleet.count()

    async def look_anew(self) -> None:
        """Ask now, if anybody tells. Raises PlatformUnavailable if the receiver should and does not."""
        if self._inquiry is not None:
            await self._inquiry.look_anew()

    async def scale_to(self, replicas: int) -> None:
        """Queue an event if the number is another one than the newest event's; returns at once.

        The first wish after a start is always told, after what was left undelivered. What cannot be delivered
        is told by `last_error` and the log, and tried again. Raises PlatformUnavailable before `start` and
        after `stop`.
        """
        self._fleet.check_wish(replicas)
        self._fleet.wanted(replicas)
        if replicas == self._newest:
            return
        if self._newest is None and len(self._outbox):
            log.info("events of earlier are delivered now", pool=self._options.pool, count=len(self._outbox))
        self._outbox.add(replicas, self._newest, self._fleet.busy_slots(), self._clock.wall_time())
        self._newest = replicas
        self._has_work.set()

    @property
    def listed(self) -> set[str]:
        """Ids of all that are listed, whether they answer or not; as in `ports.ListsReplicas`."""
        return self._fleet.listed

    def act_while(self, may_act: Callable[[], bool]) -> None:
        """Begin no attempt when `may_act` says no; as in `ports.ActsLater`."""
        self._may_act = may_act

    def stand_by(self) -> None:
        """Give up what is not delivered: it would contradict whoever asks from now on."""
        self._has_work.clear()
        if len(self._outbox):
            log.info("undelivered events are given up", pool=self._options.pool, count=len(self._outbox))
        self._outbox.clear()
        self._newest = self._event_error = None
        self._fleet.stand_by()

    async def stop(self) -> None:
        """End the telling and the watching; what is undelivered is kept for the next start."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._fleet.stop()
        await self._receiver.close()

    async def _deliver(self) -> None:
        """Deliver for ever, one after the other; what an earlier run left waits until something is asked."""
        while True:
            await self._has_work.wait()
            if not self._may_act():
                self.stand_by()
            event = self._outbox.first
            if event is None:
                self._has_work.clear()
                continue
            outcome = await self._attempt(event)
            is_wanted = self._outbox.first is event  # and was not given up meanwhile
            if isinstance(outcome, Failed):
                if is_wanted:
                    self._say(log.warning, "event is not delivered; it is sent again", outcome.why)
                await asyncio.sleep(max(self._pauses.next(), outcome.retry_after))
                continue
            self._outbox.remove(event)
            self._pauses.reset()
            if is_wanted:
                self._conclude(outcome)

    def _conclude(self, outcome: Accepted | Declined) -> None:
        """An event is done with."""
        if isinstance(outcome, Declined):
            self._say(log.error, "event was declined and is given up", outcome.why)
            self._fleet.refused(is_so=True)
            if self._outbox.first is None:
                self._newest = None  # so that the next wish is told again
            return
        if self._event_error is not None:
            log.info("the receiver takes events again", pool=self._options.pool, waiting=len(self._outbox))
        self._event_error = None
        self._fleet.refused(is_so=False)
        if self._inquiry is not None:
            self._inquiry.hurry()
        if outcome.report is not None and self._inquiry is not None:  # else nobody would tell it anew
            self._inquiry.answered(outcome.report)

    async def _attempt(self, event: ScaleEvent) -> Outcome:
        try:
            secrets = self._secrets()
        except UsageError as error:
            return Failed(str(error))
        body = event.as_cloud_event(self._options.pool)
        timestamp = int(self._clock.wall_time())
        return await self._receiver.post(body, signature_headers(secrets, event.id, timestamp, body))

    def _secrets(self) -> tuple[bytes, ...]:
        """Read them anew each time, for they are renewed while this program runs."""
        path = self._options.secret_file
        return () if path is None else read_secrets(path)

    def _say(self, tell: Callable[..., object], what: str, why: str) -> None:
        """Tell a new failure loudly, a repeated one softly."""
        tell = log.debug if why == self._event_error else tell
        tell(what, pool=self._options.pool, why=why)
        self._event_error = why
