"""Reads the demand of a pool from a Prometheus that scrapes its doors.

Rates and means come as PromQL makes them of what the doors export; resets of counters are Prometheus' to
see. A door that was scraped a while ago and is not now, or that is down by `up`, is missing and not zero: the
rates over the window still hold what it counted, and the observation says that it is partial. A Prometheus
that does not answer, or knows nothing of the pool, gives no observation at all. After one was away the window
begins where it came back (`scrapes`), and a door of which it has not two samples yet is missing.

Compared with reading the doors themselves it is later, by half the window and a scrape, and knows neither of
ends in order nor of the last seconds.
"""

import asyncio
import ssl
from dataclasses import dataclass
from math import isfinite, nan

import aiohttp
import msgspec
import structlog

from autoscaler.domain import Observation
from autoscaler.no_answer import why_no_answer
from autoscaler.ports import Clock
from autoscaler.telemetry.demand.options import PrometheusDemand
from autoscaler.telemetry.demand.scrapes import scraped_for
from autoscaler.tls import client_context

log = structlog.get_logger(__name__)

_ANSWER_MAX = 16 * 2**20
"""A longer answer is not read [bytes]; the samples of a thousand doors take about one megabyte."""
_VALUE_MAX = 2.0**53
"""No rate and no count is so large; what is more is a mistake."""
_WHY_MAX = 500
"""So much is told of what it says [characters]."""


class _Sample(msgspec.Struct):
    value: tuple[float, str] = (nan, "nan")
    values: list[tuple[float, str]] = []


class _Data(msgspec.Struct):
    result: list[_Sample] = []


class _Body(msgspec.Struct):
    status: str = ""
    data: _Data | None = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class Rates:
    """What is known of a pool at a moment; 1/s and means over the window, and what is there now."""

    arrivals: float
    completions: float
    service_time: float
    """Seconds in slots that ended, a second [1]."""
    service_time_square: float
    busy: float
    queue_depth: float
    oldest_wait: float
    rejected: float
    tokens_in: float
    tokens_out: float
    doors: float
    missing: float
    """Doors that were there lately, or are down, or have no rate yet [1]."""


def queries(
    pool: str, options: PrometheusDemand, carry: float, window: float | None = None
) -> dict[str, str]:
    """Return the question for each field of `Rates`, in PromQL.

    Parameters
    ----------
    pool : str
        As the doors call it.
    options : PrometheusDemand
        Window and labels.
    carry : float
        A door that was there so lately and is not any more is missing [s].
    window : float or None
        Shorter than that of the options [s].
    """
    labels, over = _labels(pool, options), _range(options.window if window is None else window)

    def rate(metric: str, and_label: str = "") -> str:
        return f"sum(rate(autoscaler_{metric}{{{labels}{and_label}}}{over}))"

    there = _depth(pool, options)
    lately = f"last_over_time({there}{_range(carry)})"
    unrated = f" + (count({there} unless count_over_time({there}{over}) > 1) or vector(0))"
    down = f" + (count(up{{{options.selector}}} == 0) or vector(0))" if options.selector else ""
    return {
        "arrivals": rate("arrivals_total"),
        "completions": rate("service_time_seconds_count"),
        "service_time": rate("service_time_seconds_sum"),
        "service_time_square": rate("service_time_squares_total"),
        "busy": rate("busy_slot_seconds_total"),
        "queue_depth": f"sum({there})",
        "oldest_wait": f"max(autoscaler_oldest_wait_seconds{{{labels}}})",
        "rejected": rate("requests_total", ',outcome="rejected"'),
        "tokens_in": rate("tokens_total", ',direction="in"'),
        "tokens_out": rate("tokens_total", ',direction="out"'),
        "doors": f"count({there})",
        "missing": f"(count({lately} unless {there}) or vector(0)){unrated}{down}",
    }


def _labels(pool: str, options: PrometheusDemand) -> str:
    name = pool.replace("\\", "\\\\").replace('"', '\\"')
    return f'pool="{name}"' + (f",{options.selector}" if options.selector else "")


def _range(seconds: float) -> str:
    return f"[{seconds * 1e3:.0f}ms]" if seconds % 1 else f"[{seconds:.0f}s]"


def _depth(pool: str, options: PrometheusDemand) -> str:
    """Return what every door of the pool exports all the time."""
    return f"autoscaler_queue_depth{{{_labels(pool, options)}}}"


class PrometheusReader:
    """Asks every few seconds, and gives an observation when it is asked for one.

    Parameters
    ----------
    pool : str
        As the doors call it.
    options : PrometheusDemand
        Whom to ask, and for what.
    carry : float
        What was read last is believed to go on for so long [s].
    clock : Clock
        The time.
    """

    def __init__(self, pool: str, options: PrometheusDemand, carry: float, clock: Clock) -> None:
        self._pool, self._options, self._carry, self._clock = pool, options, carry, clock
        self._rates: Rates | None = None
        self._read_at = -1e9
        self._closed_at = clock.now()
        self._is_running = False
        self._owed = {"arrivals": 0.0, "completions": 0.0}
        self.trouble = ""
        """Why it could not be read last; empty if it could."""

    @property
    def troubles(self) -> dict[str, str]:
        """The same by the address of the Prometheus; empty if it could be read."""
        return {self._options.url: self.trouble} if self.trouble else {}

    async def run(self) -> None:
        """Ask for ever."""
        self._is_running = True
        async with self.session() as session:
            due = self._clock.now()
            while True:
                await self.read(session)
                due = max(due + self._options.interval, self._clock.now())
                await asyncio.sleep(due - self._clock.now())

    def session(self) -> aiohttp.ClientSession:
        """Return what it is asked with."""
        tls: ssl.SSLContext | bool = True if self._options.tls is None else client_context(self._options.tls)
        patience = aiohttp.ClientTimeout(total=self._options.timeout)
        return aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=tls), timeout=patience)

    @property
    def doors(self) -> int:
        """Doors that it knew of when it was asked last [1]."""
        return 0 if self._rates is None else round(self._rates.doors)

    async def read(self, session: aiohttp.ClientSession) -> None:
        """Ask everything once."""
        depth, options = _depth(self._pool, self._options), self._options
        try:
            (clock, *_), samples = await asyncio.gather(
                self._ask(session, "vector(time())"), self._ask(session, depth + _range(options.window))
            )
            times = [[at for at, _ in each.values] for each in samples]
            at = clock.value[0]  # of its own clock, so that rates and sums are of one moment
            seen = scraped_for(times, at, options.window)
            if samples and seen is None:
                self._note(f"it has not scraped pool {self._pool!r} for long enough, or does not any more")
                return
            asked = queries(self._pool, options, self._carry, seen)
            answers = await asyncio.gather(*(self._ask(session, query, at) for query in asked.values()))
            values = {name: _value(answer) for name, answer in zip(asked, answers, strict=True)}
        except (aiohttp.ClientError, OSError, ValueError) as error:  # TimeoutError is an OSError
            self._note(why_no_answer(error))
            return
        rates = Rates(**values)
        if not isfinite(rates.arrivals) or not rates.doors > 0:
            self._note(f"it has no metrics of pool {self._pool!r}; have it scrape the sidecars")
            return
        self._note("")
        self._rates, self._read_at = rates, self._clock.now()

    def close(self, now: float, wall_time: float) -> Observation | None:
        """End the interval at `now`; None if nothing is known of it."""
        interval, self._closed_at = now - self._closed_at, now
        rates = self._rates
        if rates is None or interval <= 0 or now - self._read_at >= self._carry:
            return None
        completions = self._whole("completions", rates.completions * interval)
        of_each = completions / rates.completions if rates.completions > 0 else 0.0
        queue_depth = round(_known(rates.queue_depth))
        return Observation(
            interval=interval,
            arrivals=self._whole("arrivals", rates.arrivals * interval),
            completions=completions,
            service_time_sum=_known(rates.service_time) * of_each,
            service_time_square_sum=_known(rates.service_time_square) * of_each,
            busy_slots_mean=_known(rates.busy),
            in_flight=queue_depth + round(_known(rates.busy)),
            queue_depth=queue_depth,
            oldest_wait=_known(rates.oldest_wait),
            wall_time=wall_time,
            rejected=round(_known(rates.rejected) * interval),
            tokens_in=round(_known(rates.tokens_in) * interval),
            tokens_out=round(_known(rates.tokens_out) * interval),
            is_partial=_known(rates.missing) > 0,
        )

    def _whole(self, name: str, count: float) -> int:
        """Return a whole count; what is left of one is owed to the next interval."""
        owed = self._owed[name] + _known(count)
        whole = int(owed)
        self._owed[name] = owed - whole
        return whole

    async def _ask(
        self, session: aiohttp.ClientSession, query: str, at: float | None = None
    ) -> list[_Sample]:
        """Return what a query gives at a time of its clock [s since the epoch]; None is now."""
        endpoint = self._options.url.rstrip("/") + "/api/v1/query"
        headers = {}
        if self._options.token_file is not None:
            headers["Authorization"] = f"Bearer {self._options.token_file.read_text('utf-8').strip()}"
        asked = {"query": query} | ({} if at is None else {"time": f"{at:.3f}"})
        async with session.post(endpoint, data=asked, headers=headers) as answer:
            raw = await answer.content.read(_ANSWER_MAX)
            while not answer.content.at_eof() and len(raw) < _ANSWER_MAX:
                raw += await answer.content.read(_ANSWER_MAX - len(raw))
        try:
            body = msgspec.json.decode(raw, type=_Body)
        except (msgspec.DecodeError, RecursionError) as error:
            raise ValueError(f"answers {answer.status}, but not as a Prometheus does") from error
        if body.status != "success" or body.data is None:
            raise ValueError(f"refuses {query}: {body.error[:_WHY_MAX] or f'status {answer.status}'}")
        return body.data.result

    def _note(self, trouble: str) -> None:
        """Say that it cannot be read, or can again, once."""
        if self._is_running and trouble and trouble != self.trouble:
            log.warning(
                "demand cannot be read; it goes on as last known", prometheus=self._options.url, why=trouble
            )
        elif self._is_running and self.trouble and not trouble:
            log.info("demand is read again", prometheus=self._options.url)
        self.trouble = trouble


def _value(answer: list[_Sample]) -> float:
    """Return the one value of an answer; not-a-number if there is none. Raises ValueError if it cannot be."""
    if not answer:
        return nan
    value = float(answer[0].value[1])
    if not 0 <= value < _VALUE_MAX:
        raise ValueError(f"answers {value:g}, which is no rate and no count; look at what the doors export")
    return value


def _known(value: float) -> float:
    return value if isfinite(value) and value > 0 else 0.0
