"""Open-loop load over HTTP: requests are sent when they were meant to be, whatever the server does.

A closed loop, which waits for an answer before it sends the next request, stops asking just when the server
stalls, and so leaves out of its figures the very requests that would have suffered (coordinated omission).
Here the send times are fixed beforehand and latency counts from the *intended* time: if the generator
itself, or the lack of a connection, delays a request, that shows too.

Bounded: in time by the last arrival and the time-out of each request, in number by the arrivals given.
"""

import asyncio
import os
import re
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

import aiohttp

# Some servers close an idle connection after 5 s. A request sent at that moment would fail through no fault
# of theirs.
IDLE_CONNECTION_MAX = 4.0  # [s]
_TRIED_ANEW_AFTER = 0.05  # [s]


@dataclass(frozen=True, slots=True)
class Outgoing:
    """One request to send."""

    url: str
    method: str = "POST"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None


@dataclass(slots=True)
class Record:
    """What became of one request; times are seconds from the start of the run, None where it came not so far.

    Attributes
    ----------
    intended, sent : float
        When it was to be sent, and when the generator came to it [s].
    first_byte, end : float or None
        When the head of the answer came, and when the request was over, well or not [s].
    status : int or None
        Of the answer.
    error : str or None
        What broke, in a few words; `timeout` if nothing but time ran out.
    bytes_received : int
        Of the answer's body [bytes].
    queue_time, service_time : float or None
        As the header `Server-Timing` of the answer tells [s].
    tries : int
        How often it was sent [1]: again if it broke off without any answer, and that is wanted.
    """

    intended: float
    sent: float
    first_byte: float | None = None
    end: float | None = None
    status: int | None = None
    error: str | None = None
    bytes_received: int = 0
    queue_time: float | None = None
    service_time: float | None = None
    tries: int = 1

    @property
    def finished(self) -> bool:
        """Whether it came to an end, good or bad, before the run was stopped."""
        return self.end is not None

    @property
    def failed(self) -> bool:
        """Whether it ended without a whole answer, or with status 400 or above."""
        return self.finished and (self.error is not None or self.status is None or self.status >= 400)

    @property
    def latency(self) -> float | None:
        """From the intended send time to the last byte [s]."""
        return None if self.end is None else self.end - self.intended


class Generator:
    """Sends requests at given times and keeps a record of each.

    Parameters
    ----------
    outgoing : callable
        Makes the request of a given index.
    timeout : float
        A request without a whole answer after this time is given up [s].
    tries_max : int
        One that breaks off before any answer is made and sent anew, as a balancer does, so often at most [1].

    Attributes
    ----------
    records : list of Record
        Of all requests sent so far, in the order of their intended times.
    in_flight : set
        Those sent and not over yet.
    """

    def __init__(
        self, outgoing: Callable[[int], Outgoing], timeout: float = 60.0, tries_max: int = 1
    ) -> None:
        self.records: list[Record] = []
        self.in_flight: set[asyncio.Task[None]] = set()
        self._outgoing = outgoing
        self._timeout = timeout
        self._tries_max = tries_max
        self._stop = asyncio.Event()
        self._started_at = 0.0

    def elapsed(self) -> float:
        """Time since the start of the run [s]."""
        return time.monotonic() - self._started_at

    def stop(self) -> None:
        """Send no more and cut off what runs; `run` returns at once."""
        self._stop.set()

    async def run(self, arrivals: Iterable[float]) -> list[Record]:
        """Send a request at each time of `arrivals` [s from now, sorted]; return when all are over."""
        self._started_at = time.monotonic()  # the loop's own clock may tick in milliseconds
        connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=IDLE_CONNECTION_MAX)
        timeout = aiohttp.ClientTimeout(total=self._timeout)
        async with aiohttp.ClientSession(
            connector=connector, timeout=timeout, auto_decompress=False
        ) as session:
            for index, intended in enumerate(arrivals):
                if await self._stopped_before(intended):
                    break
                record = Record(float(intended), self.elapsed())
                self.records.append(record)
                task = asyncio.create_task(self._send(session, index, self._outgoing(index), record))
                self.in_flight.add(task)
                task.add_done_callback(self.in_flight.discard)
            await self._drain()
        return self.records

    async def _stopped_before(self, moment: float) -> bool:
        """Wait until `moment` [s from the start] or the stop of the run; return whether it is stopped."""
        with suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, moment - self.elapsed())):
                await self._stop.wait()
        return self._stop.is_set()

    async def _drain(self) -> None:
        """Wait for what is in flight; cut it off when the run is stopped."""
        stopped = asyncio.create_task(self._stop.wait())
        while self.in_flight and not stopped.done():
            await asyncio.wait({*self.in_flight, stopped}, return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        for task in self.in_flight:
            task.cancel()
        await asyncio.gather(*self.in_flight, return_exceptions=True)

    async def _send(
        self, session: aiohttp.ClientSession, index: int, outgoing: Outgoing, record: Record
    ) -> None:
        """Send one request; if it breaks off without any answer, send it anew as often as is allowed."""
        await self._exchange(session, outgoing, record)
        while record.error not in (None, "timeout") and record.status is None:
            if record.tries >= self._tries_max:
                return
            record.tries, record.error, record.end = record.tries + 1, None, None
            await asyncio.sleep(_TRIED_ANEW_AFTER)
            await self._exchange(session, self._outgoing(index), record)

    async def _exchange(self, session: aiohttp.ClientSession, outgoing: Outgoing, record: Record) -> None:
        """Send one request and write down what became of it."""
        try:
            async with session.request(
                outgoing.method,
                outgoing.url,
                data=outgoing.body,
                headers=outgoing.headers,
                allow_redirects=False,
            ) as answer:
                record.first_byte = self.elapsed()
                record.status = answer.status
                timing = server_timing(answer.headers.getall("Server-Timing", []))
                record.queue_time, record.service_time = timing.get("queue"), timing.get("service")
                async for chunk in answer.content.iter_any():
                    record.bytes_received += len(chunk)
        except TimeoutError:  # before OSError and ClientError, of which it is one
            record.error = "timeout"
        except Exception as error:  # whatever it is, this request failed, and its record must say so
            record.error = in_few_words(error)
        record.end = self.elapsed()


def in_few_words(error: Exception) -> str:
    """Name a failure so that equal ones can be counted together."""
    reason = getattr(error, "os_error", error)
    if isinstance(reason, OSError) and reason.errno:
        return os.strerror(reason.errno).lower()
    return re.sub(r"(?<!^)(?=[A-Z])", " ", type(error).__name__).removesuffix(" Error").lower()


_METRIC = re.compile(r"\s*([\w!#$%&'*+.^`|~-]+)\s*(?:;.*?\bdur\s*=\s*\"?(\d+(?:\.\d*)?)\"?\s*(?:;.*)?)?")


def server_timing(headers: Iterable[str]) -> dict[str, float]:
    """Return the durations of `Server-Timing` headers by name [s]; there they are milliseconds."""
    durations = {}
    for metric in ",".join(headers).split(","):
        if (match := _METRIC.fullmatch(metric)) and match[2]:
            durations[match[1]] = float(match[2]) / 1000
    return durations
