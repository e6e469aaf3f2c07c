"""Quantiles beside those of other libraries, over the same origins: part of `python -m load.bench forecast`.

Peers: AutoETS and MSTL of statsforecast, which is not a dependency of this project (how to get it is said
where it is missing), and ETSModel of statsmodels with its own prediction intervals. Each is fitted at each
origin to the same counts that ours had known, at most four weeks of them, gaps bridged by straight lines,
for they take none; that is why the origins are few. Where no day is known yet, peers know of none either.
"""

import importlib
import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from forecasting import Series
from forecasting.scores import pinball
from load.bench.forecast_cases import Case
from load.bench.forecast_run import Run

ORIGINS, FITTED_COUNTS = 24, 50_000
"""Fits of each peer on each trace, spread evenly; fewer, but six, where so many counts would be fitted to."""
LEVELS = (0.9, 0.99)
BANDS = [80, 98]
"""Central intervals [%] whose upper ends are the quantiles 0.9 and 0.99."""
SEASON_MAX = 24
"""Longest season that exponential smoothing is given: statsforecast's refuses longer ones."""
HISTORY_DAYS = 28

Peer = Callable[[np.ndarray, int, int], np.ndarray]
"""Counts, season, horizon → quantiles, shape (horizon, 2)."""

HOW_TO_GET_THE_PEER = (
    "statsforecast cannot be imported ({error}): compared with statsmodels alone. To compare with it, "
    "pip install --target DIR statsforecast into a folder of its own, and run with PYTHONPATH=DIR."
)


def beside_peers(console: Console, measured: Sequence[tuple[Case, Series, Run]]) -> None:
    """Measure and print the second table."""
    peers = _peers(console)
    table = Table(title="Pinball loss, as a multiple of ours (above 1: ours is better); seconds a fit")
    table.add_column("trace")
    for name in peers:
        for what in ("0.9", "0.99", "fit [s]"):
            table.add_column(f"{name} {what}", justify="right")
    better = {name: [0, 0] for name in peers}
    for case, series, run in track(measured, "peers", console=console):
        row = [case.name]
        for name, peer in peers.items():
            ratios, seconds = _compared(case, series, run, peer)
            better[name] = [wins + (ratio > 1) for wins, ratio in zip(better[name], ratios, strict=True)]
            row += [f"{ratio:.2f}" for ratio in ratios] + [f"{seconds:.2f}"]
        table.add_row(*row)
    console.print(table)
    for name, (often, rarely) in better.items():
        console.print(f"ours is better than {name} on {often} (0.9) and {rarely} (0.99) of {len(measured)}")


def _compared(case: Case, series: Series, run: Run, peer: Peer) -> tuple[list[float], float]:
    """Return the peer's losses as multiples of ours, over the same origins, and its mean time for a fit."""
    origins = run.said[0].origins
    fits = max(6, min(ORIGINS, FITTED_COUNTS // min(len(series), HISTORY_DAYS * case.season_length)))
    few = np.unique(np.linspace(0, len(origins) - 1, fits).astype(int))
    horizon, theirs, seconds = max(case.steps), [], 0.0
    for origin in origins[few].tolist():
        known = _bridged(series.values[:origin][-HISTORY_DAYS * case.season_length :])
        season = case.season_length if len(known) >= 2 * case.season_length else 1
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs.append(peer(known, season, horizon))
        seconds += time.perf_counter() - start
    losses = np.zeros((2, 2))
    for said in run.said:
        quantiles = np.array([each[said.step - 1] for each in theirs])
        for i, p in enumerate(LEVELS):
            losses[0, i] += pinball(said.came[few], quantiles[:, i], p)
            losses[1, i] += pinball(said.came[few], said.quantiles[few, i], p)
    return list(losses[0] / losses[1]), seconds / len(few)


def _peers(console: Console) -> dict[str, Peer]:
    try:
        models = importlib.import_module("statsforecast.models")
    except ImportError as error:
        console.print(HOW_TO_GET_THE_PEER.format(error=error))
        return {"statsmodels ETS": _statsmodels}
    return {
        "AutoETS": partial(_auto_ets, models),
        "MSTL": partial(_mstl, models),
        "statsmodels ETS": _statsmodels,
    }


def _auto_ets(models: Any, counts: np.ndarray, season: int, horizon: int) -> np.ndarray:
    return _upper(models.AutoETS(season_length=season if season <= SEASON_MAX else 1), counts, horizon)


def _mstl(models: Any, counts: np.ndarray, season: int, horizon: int) -> np.ndarray:
    seasons = [season, 7 * season] if len(counts) >= 2 * 7 * season else [season]
    if season == 1:
        return _auto_ets(models, counts, season, horizon)
    return _upper(models.MSTL(season_length=seasons), counts, horizon)


def _upper(model: Any, counts: np.ndarray, horizon: int) -> np.ndarray:
    said = model.forecast(counts, horizon, level=BANDS)
    return np.column_stack([np.maximum(said[f"hi-{band}"], 0.0) for band in BANDS])


def _statsmodels(counts: np.ndarray, season: int, horizon: int) -> np.ndarray:
    import pandas as pd  # noqa: PLC0415 - these two take a second to load
    from statsmodels.tsa.exponential_smoothing.ets import ETSModel  # noqa: PLC0415

    seasonal = 1 < season <= SEASON_MAX
    model = ETSModel(
        pd.Series(counts),  # of an array it makes no intervals
        trend="add",
        damped_trend=True,
        seasonal="add" if seasonal else None,
        seasonal_periods=season if seasonal else None,
    )
    prediction = model.fit(disp=False).get_prediction(start=len(counts), end=len(counts) + horizon - 1)
    ends = [np.asarray(prediction.pred_int(alpha=1 - band / 100))[:, 1] for band in BANDS]
    return np.maximum(np.column_stack(ends), 0.0)


def _bridged(counts: np.ndarray) -> np.ndarray:
    known = ~np.isnan(counts)
    places = np.arange(len(counts))
    return np.interp(places, places[known], counts[known])
