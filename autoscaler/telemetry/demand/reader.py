"""Reads many doors at the same time, each with a time limit of its own; so no slow one delays another."""

import asyncio
import ssl
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import Protocol

import aiohttp
import structlog

from autoscaler.no_answer import why_no_answer
from autoscaler.ports import Clock
from autoscaler.scaling.doors import DoorInterval, DoorReading, Doors
from autoscaler.telemetry.demand.report import PATH, REPORT_BYTES_MAX, read_report
from autoscaler.tls import ClientTls, client_context

_SAID_AGAIN_AFTER = 60.0
"""One who does not answer and says something else each time is told of in the log so seldom [s]."""

log = structlog.get_logger(__name__)


class Finder(Protocol):
    """Who finds the doors of a pool."""

    @property
    def trouble(self) -> str:
        """Why nobody can tell, if nobody can, for a person."""

    async def look(self) -> Collection[str] | None:
        """Return the base URLs of their admin listeners now; None if nobody can tell."""

    async def close(self) -> None:
        """Let go of everything."""


@dataclass(frozen=True, slots=True)
class ReaderOptions:
    """How the doors of a pool are read."""

    interval: float = 2.0
    """Between two readings [s]; several fit into a control interval, so that one may fail."""
    timeout: float = 2.0
    """A door that takes longer to answer has not answered [s]."""
    look_interval: float = 5.0
    """Between two looks at who is there [s]."""
    token_file: Path | None = None
    """File with the token that the doors ask for; None if they ask for none."""
    tls: ClientTls | None = None
    """How the doors are checked, if their URLs are https; None takes what is usual."""

    def __post_init__(self) -> None:
        for name in ("interval", "timeout", "look_interval"):
            if getattr(self, name) <= 0:
                raise ValueError(f"need {name} > 0 s, got {getattr(self, name)}")


class DoorReader:
    """Keeps `doors` of one pool informed.

    Parameters
    ----------
    pool : str
        As the doors call it.
    doors : Doors
        Told what was read.
    finder : Finder
        Says whom to ask.
    options : ReaderOptions
        How often and how patiently.
    clock : Clock
        The time.
    """

    def __init__(self, pool: str, doors: Doors, finder: Finder, options: ReaderOptions, clock: Clock) -> None:
        self._pool, self._doors, self._finder = pool, doors, finder
        self._options, self._clock = options, clock
        self._trouble: dict[str, str] = {}
        self._unfound = ""
        self._said_at: dict[str, float] = {}
        self._is_running = False
        self._name = token_hex(8)

    async def run(self) -> None:
        """Read for ever, and close what was opened when cancelled."""
        self._is_running = True
        try:
            await self.look()
            async with self.session() as session, asyncio.TaskGroup() as group:
                group.create_task(self._look_now_and_then(), name=f"looks for doors of {self._pool}")
                group.create_task(self._read_now_and_then(session), name=f"reads doors of {self._pool}")
        finally:
            await self._finder.close()

    async def look(self) -> None:
        """Look who is there; if nobody can tell, those that are known stay."""
        found = await self._finder.look()
        self._unfound = "" if found is not None else self._finder.trouble
        if found is not None:
            self._doors.listed(found, self._clock.now())

    def session(self) -> aiohttp.ClientSession:
        """Return what doors are asked with."""
        tls: ssl.SSLContext | bool = True if self._options.tls is None else client_context(self._options.tls)
        connector = aiohttp.TCPConnector(limit=0, ssl=tls, keepalive_timeout=4 * self._options.interval)
        patience = aiohttp.ClientTimeout(total=self._options.timeout)
        return aiohttp.ClientSession(connector=connector, timeout=patience)

    def trouble(self, address: str) -> str:
        """Return why a door did not answer last; empty if it did."""
        return self._trouble.get(address, "")

    @property
    def troubles(self) -> dict[str, str]:
        """Why each door did not answer last that did not, by address; and why nobody tells where they are."""
        unfound = {"where doors are": self._unfound} if self._unfound else {}
        return unfound | {address: trouble for address, trouble in self._trouble.items() if trouble}

    async def read(self, session: aiohttp.ClientSession) -> None:
        """Ask everybody once."""
        addresses = self._doors.addresses
        await asyncio.gather(*(self._ask(session, address) for address in addresses))
        self._trouble = {address: self.trouble(address) for address in addresses}
        self._said_at = {address: at for address, at in self._said_at.items() if address in self._trouble}

    async def _look_now_and_then(self) -> None:
        """Look for ever; beside the reading, for a name server may take its time."""
        while True:
            await asyncio.sleep(self._options.look_interval)
            await self.look()

    async def _read_now_and_then(self, session: aiohttp.ClientSession) -> None:
        """Read for ever, at even times; a time that is missed is not made up for."""
        due = self._clock.now()
        while True:
            await self.read(session)
            due = max(due + self._options.interval, self._clock.now())
            await asyncio.sleep(due - self._clock.now())

    async def _ask(self, session: aiohttp.ClientSession, address: str) -> None:
        incarnation, sequence = self._doors.cursor(address)
        query = {"since": str(sequence), "reader": self._name} | (
            {"incarnation": incarnation} if incarnation else {}
        )
        began = self._clock.now()
        try:
            async with session.get(address + PATH, params=query, headers=self.headers()) as answer:
                raw = await whole_body(answer, REPORT_BYTES_MAX)
            _check_status(answer, raw)
            report = read_report(raw)
            told = report.pools.get(self._pool)
            if told is None:
                names = ", ".join(report.pools) or "none"
                raise ValueError(f"it has no pool {self._pool!r}, but {names}; give both the same name")
        except (aiohttp.ClientError, OSError, ValueError) as error:  # TimeoutError is an OSError
            self._note(address, why_no_answer(error))
            self._doors.unanswered(address, self._clock.now(), refused=is_refused(error))
            return
        self._note(address, "")
        # Ages are as of its writing, which was after the question and before now.
        now = self._clock.now()
        written_at = (began + now) / 2
        intervals = tuple(
            DoorInterval(each.sequence, written_at - each.age, each.observation) for each in told.intervals
        )
        reading = DoorReading(report.incarnation, intervals, told.slots, told.busy, report.leaving)
        self._doors.answered(address, reading, now)

    def headers(self) -> dict[str, str]:
        """Return what doors want to see. Raises ValueError if the file of the token cannot be read."""
        if (path := self._options.token_file) is None:
            return {}
        try:
            return {"Authorization": f"Bearer {path.read_text('utf-8').strip()}"}
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or str(error)
            raise ValueError(f"token_file {path} cannot be read: {why.lower()}") from error

    def _note(self, address: str, trouble: str) -> None:
        """Say that a door does not answer, or does again, once."""
        before = self._trouble.get(address, "")
        self._trouble[address] = trouble
        if not self._is_running:
            return
        if trouble and trouble != before:
            if is_worth_saying(self._said_at, address, self._clock.now(), is_first=not before):
                log.warning("demand cannot be read; it goes on as last known", door=address, why=trouble)
        elif before and not trouble:
            log.info("demand is read again", door=address)


def is_worth_saying(said_at: dict[str, float], address: str, now: float, *, is_first: bool) -> bool:
    """Whether another trouble with an address is news; notes in `said_at` that it is said now."""
    is_news = is_first or now - said_at.get(address, now) >= _SAID_AGAIN_AFTER
    if is_news:
        said_at[address] = now
    return is_news


async def whole_body(answer: aiohttp.ClientResponse, bytes_max: int) -> bytes:
    """Read an answer to its end. Raises ValueError if it has more than `bytes_max`."""
    whole = bytearray()
    async for part in answer.content.iter_any():
        whole += part
        if len(whole) > bytes_max:
            raise ValueError(f"the answer has more than {bytes_max} bytes")
    return bytes(whole)


def _check_status(answer: aiohttp.ClientResponse, raw: bytes) -> None:
    if answer.status != 200:
        text = raw[:200].decode("utf-8", "replace")
        remedy = {401: "; set token_file", 404: f"; name the admin listener of one that has {PATH}"}
        raise ValueError(f"answered {answer.status}: {text.strip()}{remedy.get(answer.status, '')}")


def is_refused(error: Exception) -> bool:
    """Whether its machine said that nobody listens there."""
    return isinstance(error, aiohttp.ClientConnectorError) and isinstance(
        error.os_error, ConnectionRefusedError
    )
