"""Reads the signals of one pool, interval by interval, and grades each by the self-test.

Nothing is decided here, and nothing waits for this: what is quarantined is told, once, and the controller
never asks. A signal of exporters that come and go with the replicas is one signal: what it reads is put
together from those that are there.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import structlog

from autoscaler.ports import Clock
from autoscaler.telemetry.ledger_watch import LedgerWatch
from autoscaler.telemetry.scrape.presets import RUNNING
from autoscaler.telemetry.scrape.reading import SignalReading
from autoscaler.telemetry.scrape.scraper import EXPORTERS_MAX, Exporter, Scraper
from autoscaler.telemetry.scrape.several import combined
from autoscaler.telemetry.scrape.source import SignalSource
from autoscaler.telemetry.signal_test import Grade, SignalTest, Standing
from autoscaler.telemetry.signal_test_window import Circumstances

log = structlog.get_logger(__name__)

INTERVAL = 10.0
"""Between two scrapes [s]; the self-test is made for about thirty samples in five minutes."""
_FRESH = 2.5 * INTERVAL
"""An exporter whose value is older counts as silent [s]."""


@dataclass(frozen=True, slots=True)
class SignalOptions:
    """Signals of one kind of exporter."""

    name: str
    """What the user calls it: `engine`."""
    sources: tuple[SignalSource, ...]
    """What is read from each of them."""
    urls: tuple[str, ...] = ()
    """Where they are; empty asks each ready replica itself, at `path`."""
    path: str = "/metrics"
    """Where a replica shows its metrics, on its own port."""


@dataclass(frozen=True, slots=True)
class GradedSignal:
    """One signal, as it is read and as it is held."""

    name: str
    """Of the exporter and of the signal: `engine.requests_running`."""
    reading: SignalReading
    grade: Grade


@dataclass
class _Signal:
    """One signal of an exporter's kind, from interval to interval."""

    name: str
    source: SignalSource
    test: SignalTest
    reading: SignalReading = field(default_factory=SignalReading)

    @classmethod
    def of(cls, options: SignalOptions, source: SignalSource) -> "_Signal":
        """Return the signal before anything was read of it."""
        return cls(f"{options.name}.{source.name}", source, SignalTest(source))


class SignalWatch:
    """All signals of one pool.

    Parameters
    ----------
    pool : str
        Its name, for the log.
    options : sequence of SignalOptions
        What is read, and where.
    clock : Clock
        The time.
    circumstances : callable
        Returns our own measures of the last interval; None while there are none.
    replica_urls : callable
        Returns the base URLs of the ready replicas.
    ledger : LedgerWatch or None
        Compares with the ledger what replicas say of the requests that they hold.
    """

    def __init__(
        self,
        pool: str,
        options: Sequence[SignalOptions],
        clock: Clock,
        circumstances: Callable[[], Circumstances | None],
        replica_urls: Callable[[], Sequence[str]],
        ledger: LedgerWatch | None = None,
    ) -> None:
        self._pool = pool
        self._clock = clock
        self._circumstances = circumstances
        self._replica_urls = replica_urls
        self._ledger = ledger
        self._scraper = Scraper(clock)
        self._exporters: dict[tuple[str, str], Exporter] = {}
        self.troubles: dict[str, str] = {}
        """Why signals could not be read last, those of each kind of exporter; without those that could."""
        self._groups = [(each, [_Signal.of(each, source) for source in each.sources]) for each in options]

    @property
    def signals(self) -> tuple[GradedSignal, ...]:
        """Every signal as it is now."""
        return tuple(
            GradedSignal(each.name, each.reading, each.test.grade)
            for _, signals in self._groups
            for each in signals
        )

    async def run(self) -> None:
        """Read and grade until cancelled; whatever happens, it goes on."""
        await self._scraper.start()
        try:
            while True:
                try:
                    await self.look()
                except Exception as error:  # one bad interval; the next may be better
                    log.error("signals cannot be read", pool=self._pool, exc_info=error)
                await asyncio.sleep(INTERVAL)
        finally:
            await self._scraper.close()

    async def look(self) -> None:
        """Ask every exporter once, and grade what came."""
        groups = [(options, signals, self._exporters_of(options)) for options, signals in self._groups]
        if self._ledger is not None:
            self._ledger.begin()
        await asyncio.gather(*(self._scraper.scrape(exporters) for _, _, exporters in groups))
        now, around = self._clock.now(), self._circumstances()
        if self._ledger is not None:
            self._ledger.compare(self._servers(), now)
        for _, signals, exporters in groups:
            for signal in signals:
                readings = [exporter.readings[signal.source.name] for exporter in exporters]
                signal.reading = combined(readings, signal.source.add_up, now, _FRESH)
                # Without exporters (no replica is ready) a signal is not stale: nobody could have told it.
                if around is not None and exporters:
                    self._grade(signal, around, now)

        self.troubles = {
            f"signals {options.name}": fault
            for options, signals, exporters in groups
            if exporters and (fault := next(filter(None, (each.reading.fault for each in signals)), ""))
        }

    def _grade(self, signal: _Signal, around: Circumstances, now: float) -> None:
        before = signal.test.grade
        after = signal.test.take(signal.reading, around, now)
        if (after.standing, after.diagnosis) == (before.standing, before.diagnosis):
            return
        if after.standing is Standing.QUARANTINED:
            log.warning(
                "signal is quarantined; scaling goes on without it",
                pool=self._pool,
                signal=signal.name,
                diagnosis=str(after.diagnosis),
                why=after.text,
            )
        else:
            log.info("signal", pool=self._pool, signal=signal.name, standing=str(after.standing))

    def _servers(self) -> dict[str, Exporter]:
        """Return the exporters that are replicas and say how many requests they run, by base URL."""
        return {
            exporter.url.removesuffix(options.path): exporter
            for options, _ in self._groups
            if not options.urls and any(source.name == RUNNING for source in options.sources)
            for (name, _), exporter in self._exporters.items()
            if name == options.name
        }

    def _exporters_of(self, options: SignalOptions) -> list[Exporter]:
        """Return the exporters there are now; one that was there before keeps what it counted."""
        urls = options.urls or tuple(f"{url}{options.path}" for url in self._replica_urls())
        there = {(options.name, url) for url in urls[:EXPORTERS_MAX]}
        for key in [key for key in self._exporters if key[0] == options.name and key not in there]:
            del self._exporters[key]
        for key in there - self._exporters.keys():
            self._exporters[key] = Exporter(key[1], options.sources)
        return [self._exporters[key] for key in sorted(there)]
