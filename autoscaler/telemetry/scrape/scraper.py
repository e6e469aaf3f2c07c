"""Asks exporters for their metrics, all at the same time, and takes from each what it gives.

No exporter can cost more than its own reading: each has its own time and its own bytes, a body is not
decompressed, and what one answers is read apart from the others. A long text is read on a thread, so that
the event loop is not held up.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import aiohttp

from autoscaler.no_answer import why_no_answer
from autoscaler.ports import Clock
from autoscaler.telemetry.scrape.exposition_text import ACCEPT, Families, read_exposition
from autoscaler.telemetry.scrape.meter import SignalMeter
from autoscaler.telemetry.scrape.reading import SignalReading
from autoscaler.telemetry.scrape.source import SignalSource
from autoscaler.units import format_duration, format_size

EXPORTERS_MAX = 256
"""More are not asked: each may hold `bytes_max` of memory at the same time."""
_LONG = 64 * 1024
"""A text of more bytes is read on a thread."""
_REDIRECTS_MAX = 3


@dataclass(frozen=True, slots=True)
class ScrapeOptions:
    """How patient to be with an exporter."""

    timeout: float = 3.0
    """From the first try to connect to the last byte [s]; keep it below the interval."""
    bytes_max: int = 4 * 2**20
    """A longer answer is not read [bytes]."""

    def __post_init__(self) -> None:
        if self.timeout <= 0 or self.bytes_max < 1:
            raise ValueError(f"need timeout > 0 s and bytes_max >= 1, got {self.timeout}, {self.bytes_max}")


class Exporter:
    """One address, and the signals that are read from it."""

    def __init__(self, url: str, sources: Sequence[SignalSource]) -> None:
        self.url = url
        self._meters = {source.name: SignalMeter(source) for source in sources}

    def __repr__(self) -> str:
        return f"<Exporter {self.url} {' '.join(self._meters)}>"

    @property
    def readings(self) -> Mapping[str, SignalReading]:
        """The latest reading of each signal, by its name here."""
        return {name: meter.reading for name, meter in self._meters.items()}

    @property
    def wanted(self) -> frozenset[str]:
        """What the exporter calls its metrics that are wanted."""
        return frozenset(name for meter in self._meters.values() for name in meter.source.metrics)

    def take(self, families: Families, now: float, wall_time: float) -> None:
        """Take in what it answered."""
        for meter in self._meters.values():
            meter.take(families, now, wall_time)

    def fail(self, fault: str) -> None:
        """Note that it did not answer."""
        for meter in self._meters.values():
            meter.fail(fault)


class Scraper:
    """Asks exporters; one session for all of them, open from `start` to `close`."""

    def __init__(self, clock: Clock, options: ScrapeOptions | None = None) -> None:
        self._clock = clock
        self._options = options or ScrapeOptions()
        self._session: aiohttp.ClientSession | None = None

    async def start(self) -> None:
        """Make ready to ask."""
        # No limit of connections: one for each exporter, and none waits for the slow ones.
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),
            timeout=aiohttp.ClientTimeout(total=self._options.timeout),
            headers={"Accept": ACCEPT, "Accept-Encoding": "identity"},
            auto_decompress=False,
        )

    async def close(self) -> None:
        """Ask no more."""
        if self._session is not None:
            await self._session.close()

    async def scrape(self, exporters: Iterable[Exporter]) -> None:
        """Ask all of them once, at the same time; their readings tell what became of it.

        Takes no longer than the slowest, and that no longer than `timeout`. Raises nothing but ValueError,
        if there are more than `EXPORTERS_MAX`.
        """
        asked = list(exporters)
        if len(asked) > EXPORTERS_MAX:
            raise ValueError(f"{len(asked)} exporters; at most {EXPORTERS_MAX} can be asked")
        await asyncio.gather(*map(self._scrape_one, asked))

    async def _scrape_one(self, exporter: Exporter) -> None:
        try:
            async with asyncio.timeout(self._options.timeout):
                families = await self._families(exporter)
        except TimeoutError:
            exporter.fail(f"no answer within {format_duration(self._options.timeout)}")
        except (aiohttp.ClientError, OSError) as error:
            exporter.fail(f"cannot be asked: {why_no_answer(error)}")
        except ValueError as error:
            exporter.fail(str(error))
        else:
            exporter.take(families, self._clock.now(), self._clock.wall_time())

    async def _families(self, exporter: Exporter) -> Families:
        if self._session is None:
            raise ValueError("the scraper has not been started")
        async with self._session.get(exporter.url, max_redirects=_REDIRECTS_MAX) as response:
            if response.status != 200:
                raise ValueError(f"answers {response.status}; is this the address of its metrics?")
            if response.headers.get("Content-Encoding", "identity") != "identity":
                raise ValueError("answers compressed although it was asked not to")
            body = await self._body(response)
        text = body.decode("utf-8", errors="replace")
        content_type = response.headers.get("Content-Type", "")
        if len(body) <= _LONG:
            return _read(text, content_type, exporter.wanted)
        return await asyncio.to_thread(_read, text, content_type, exporter.wanted)

    async def _body(self, response: aiohttp.ClientResponse) -> bytes:
        chunks, size = [], 0
        async for chunk in response.content.iter_any():
            size += len(chunk)
            if size > self._options.bytes_max:
                raise ValueError(f"answers more than {format_size(self._options.bytes_max)}")
            chunks.append(chunk)
        return b"".join(chunks)


def _read(text: str, content_type: str, wanted: frozenset[str]) -> Families:
    try:
        return read_exposition(text, content_type, wanted)
    except (ValueError, KeyError, IndexError, AttributeError, TypeError) as error:
        # The parser has its ways to say that a text is none.
        raise ValueError(f"its answer is not in Prometheus' format: {error}") from error
