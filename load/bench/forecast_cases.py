"""The traces that forecasts are measured on, each with its interval, warm-up, horizons and bar.

Fourteen series of `../shared/traces`. Where a trace is of single requests they are counted; where it is
finer than anyone would forecast it, neighbours are joined. Counts marked `filled` are taken as missing: they
are neither learned nor scored. The date is the one the trace says it began, if it says one.
"""

import csv
import gzip
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from forecasting import Series

TRACES = Path(__file__).parents[3] / "shared" / "traces"
DAY = 86_400.0
BAR = 1.02
"""For traces that have none of their own: no worse than the better of persistence and seasonal naive."""


@dataclass(frozen=True, slots=True)
class Case:
    """One trace, and how it is forecast.

    Attributes
    ----------
    name, file : str
        What it is called, and where it lies below `TRACES`.
    interval : float
        Of the counts that are forecast [s].
    warm_up : float
        What is known before the first forecast [s].
    horizons : tuple of float
        [s].
    bar : float
        The most that the error may be, as a multiple of that of the better naive forecast.
    start : str
        When it began; "" if that is not known.
    """

    name: str
    file: str
    interval: float
    warm_up: float
    horizons: tuple[float, ...]
    bar: float = BAR
    start: str = ""

    @property
    def steps(self) -> list[int]:
        """The horizons, in intervals."""
        return [round(horizon / self.interval) for horizon in self.horizons]

    @property
    def season_length(self) -> int:
        """Intervals in a day."""
        return round(DAY / self.interval)


HOUR, MINUTE = 3600.0, 60.0
CASES = (
    Case("taxi", "nab/nyc_taxi_2014q3_30min.csv.gz", 1800, 14 * DAY, (1800, HOUR), 0.50, "2014-07-01"),
    Case("dewiki", "wikipedia/dewiki_2025w36_1h.csv.gz", HOUR, 3 * DAY, (HOUR, 2 * HOUR), 0.55, "2025-09-01"),
    Case("burstgpt-conv", "burstgpt/burstgpt_conv_d00_30.csv.gz", HOUR, 14 * DAY, (HOUR, 2 * HOUR), 0.84),
    Case(
        "nasa", "nasa_http_1995/nasa_jul95_1min.csv.gz", 300, 14 * DAY, (300, 600, 1800), 0.93, "1995-07-01"
    ),
    Case("burstgpt-api", "burstgpt/burstgpt_api_d00_30.csv.gz", HOUR, 14 * DAY, (HOUR, 2 * HOUR)),
    Case("bike", "bike_sharing/bike_2011_1h.csv.gz", HOUR, 28 * DAY, (HOUR, 2 * HOUR), start="2011-01-01"),
    Case("m-small", "servegen/servegen_m-small.csv.gz", 600, 7 * DAY, (600, 1800, HOUR)),
    Case("deepseek", "servegen/servegen_deepseek-r1.csv.gz", 600, DAY / 2, (600, 1800, HOUR)),
    Case("tweets-amzn", "nab/tweets_AMZN_5min.csv.gz", 300, 14 * DAY, (300, 600, 1800)),
    Case("tweets-goog", "nab/tweets_GOOG_5min.csv.gz", 300, 14 * DAY, (300, 600, 1800)),
    Case("azure-conv", "azure_llm_2023/azure2023_conv.csv.gz", 10, 1000, (10, 60, 120)),
    Case("mooncake-conv", "mooncake_fast25/mooncake_conv_h1.csv.gz", 10, 600, (10, 60, 120)),
    Case("mooncake-synth", "mooncake_fast25/mooncake_synth.csv.gz", 10, 400, (10, 60, 120)),
    Case("nasa-day", "nasa_http_1995/nasa_jul13_1s.csv.gz", 60, DAY / 4, (60, 300, 600)),
)


def read(case: Case) -> Series:
    """Return the counts of a case."""
    path = TRACES / case.file
    with gzip.open(path, "rt", newline="", encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    start = float(np.datetime64(case.start, "s").astype(int)) if case.start else math.nan
    if "arrival_s" in rows[0]:
        places = np.array([float(row["arrival_s"]) for row in rows]) // case.interval
        whole = int(places.max())  # the last interval may not have been seen to its end
        return _series(np.bincount(places.astype(int))[:whole].astype(float), case.interval, start)
    filled = np.array([row.get("filled") == "1" for row in rows])
    counts = np.where(filled, np.nan, [float(row["requests"]) for row in rows])
    return _series(counts, float(rows[0]["interval_s"]), start).resample(case.interval)


def _series(counts: np.ndarray, interval: float, start: float) -> Series:
    return Series(counts, interval, 0.0 if math.isnan(start) else start)
