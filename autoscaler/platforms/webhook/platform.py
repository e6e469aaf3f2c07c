"""The platform `webhook`: each change of the number of replicas is posted to a URL, as a CloudEvent.

Every change is delivered once, in order, and never two at a time: an event is sent until it is accepted, and
only then the next one. So a receiver that was away is told all that it missed, and ends at the newest number.
An event that is declined for good is given up; the control loop's next wish, which comes every interval,
makes a new one.

Where the replicas are is found by a list of URLs or a DNS name, or told by the receiver: in its answers to a
question that is asked now and then (`status_url`), and by then also in those to events.
"""

import asyncio
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
from autoscaler.remote_fleet import FleetReport, Pauses, RemoteFleet

_STATUS_TRUSTED = 3
"""Nobody can tell the fleet after so many questions in a row without an answer [1]."""

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
        self._outbox = Outbox(options.fleet.state_dir / "outbox.json")
        self._pauses = Pauses(options.retry_initial, options.retry_max, rng or Random())
        self._listener: ReplicaListener | None = None
        self._newest: int | None = None
        self._has_work = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._unanswered = 0 if options.status_url is None else _STATUS_TRUSTED
        self.last_error: str | None = None
        """Why the newest event is not delivered, for a person; None if it is."""

    def __repr__(self) -> str:
        return f"<Webhook desired={self._newest} {self._outbox!r} {self._fleet!r}>"

    async def start(self, listener: ReplicaListener) -> None:
        """Ask once who is there, report them, and deliver what was left undelivered.

        Raises UsageError if the secrets cannot be read.
        """
        self._secrets()
        self._listener = listener
        if self._options.status_url is not None:
            await self._ask_status()
        await self._fleet.start(listener)
        self._tasks.append(asyncio.create_task(self._deliver(), name=f"web hook {self._options.pool}"))
        if self._options.status_url is not None:
            self._tasks.append(asyncio.create_task(self._ask_now_and_then()))
        if self._outbox.first is not None:
            log.info(
                "events of an earlier run are delivered now", pool=self._options.pool, count=len(self._outbox)
            )
            self._has_work.set()

    async def fleet(self) -> Fleet:
        """Count the replicas. Raises PlatformUnavailable if the receiver, who should tell, does not."""
        if self._unanswered >= _STATUS_TRUSTED:
            raise PlatformUnavailable(f"{self._options.status_url} does not tell which replicas there are")
        return self._fleet.count()

    async def scale_to(self, replicas: int) -> None:
        """Queue an event if the number is another one than the newest event's; returns at once.

        The first wish after a start is always told. What cannot be delivered is told by `last_error` and the
        log, and tried again. Raises PlatformUnavailable before `start` and after `stop`.
        """
        if replicas < 0:
            raise ValueError(f"need replicas >= 0, got {replicas}")
        if self._listener is None:
            raise PlatformUnavailable("the web hook cannot be told anything before start or after stop")
        self._fleet.wanted(replicas)
        if replicas == self._newest:
            return
        self._outbox.add(replicas, self._newest, self._listener.busy_slots(), self._clock.wall_time())
        self._newest = replicas
        self._has_work.set()

    async def stop(self) -> None:
        """End the telling and the watching; what is undelivered is kept for the next start."""
        self._listener = None
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._fleet.stop()
        await self._receiver.close()

    async def _deliver(self) -> None:
        """Deliver for ever, one after the other."""
        while True:
            event = self._outbox.first
            if event is None:
                self._has_work.clear()
                await self._has_work.wait()
                continue
            outcome = await self._attempt(event)
            if isinstance(outcome, Failed):
                self._say(outcome.why)
                await asyncio.sleep(max(self._pauses.next(), outcome.retry_after))
                continue
            self._outbox.remove(event)
            self._pauses.reset()
            self._conclude(event, outcome)

    def _conclude(self, event: ScaleEvent, outcome: Outcome) -> None:
        """An event is done with."""
        if isinstance(outcome, Declined):
            log.error("event was declined and is given up", event_id=event.id, why=outcome.why)
            self.last_error = outcome.why
            if self._outbox.first is None:
                self._newest = None  # so that the next wish is told again
            return
        if self.last_error is not None:
            log.info("the receiver takes events again", pool=self._options.pool, waiting=len(self._outbox))
        self.last_error = None
        is_asked = self._options.status_url is not None  # else what is told now would not be told anew
        if isinstance(outcome, Accepted) and outcome.report is not None and is_asked:
            self._take_in(outcome.report)

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

    def _say(self, why: str) -> None:
        """Tell a new failure loudly, a repeated one softly."""
        tell = log.debug if why == self.last_error else log.warning
        tell("event is not delivered; it is sent again", pool=self._options.pool, why=why)
        self.last_error = why

    async def _ask_now_and_then(self) -> None:
        while True:
            await asyncio.sleep(self._options.status_interval)
            await self._ask_status()

    async def _ask_status(self) -> None:
        try:
            report = await self._receiver.status()
        except PlatformUnavailable as error:
            self._unanswered += 1
            if self._unanswered == _STATUS_TRUSTED:
                log.warning("fleet is not known any more", pool=self._options.pool, why=str(error))
            return
        self._take_in(report)

    def _take_in(self, report: FleetReport) -> None:
        self._unanswered = 0
        self._fleet.told(report)
