"""Which forecaster serves this series, chosen by what it would have cost; and why, in words.

The cost is the pinball loss at 0.9, at the horizon that matters: too little capacity costs nine times
what too much does. A forecaster that is no better than the naive ones gives way to them, and one that
cannot be fitted to the warm-up is not a candidate.

One that holds the naive ones within itself, and mixes them as the history tells, stands the other way
round: another must be *clearly* better, by two standard errors. A lead within that is chance, or the luck of
one burst; going by it cost a quarter more error on hourly page views, a third on bursts without a season.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from forecasting.backtest import backtest
from forecasting.forecaster import Forecaster, History, checked_history
from forecasting.naive import Level, Persistence, SeasonalNaive

NAIVE = (Persistence, SeasonalNaive, Level)
"""The simplest, which need no proof."""
MARGIN = 0.02
"""By this share another must be better than the best naive one to be worth its trouble."""
WARM_UP_SHARE = 2 / 3
"""Share of the history that is fitted before the first forecast is scored."""
CLEARLY = 2.0
"""Standard errors of the difference of two losses that make it clear."""
ORIGINS_MAX = 500
"""Forecasts scored per candidate, at most; more are thinned out evenly."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The choice.

    Attributes
    ----------
    name : str
        Of the chosen candidate.
    losses : Mapping[str, float]
        Pinball loss at 0.9, by name [requests per interval]; without those that could not be fitted.
    reason : str
        Why, as a sentence.
    """

    name: str
    losses: Mapping[str, float]
    reason: str

    def __str__(self) -> str:
        return self.reason


def choose(candidates: Mapping[str, Forecaster], history: History, horizon: int) -> Selection:
    """Choose a forecaster for the horizon by a rolling-origin backtest over the end of the history.

    Parameters
    ----------
    candidates : mapping of name to Forecaster
        At least one of them naive (`Persistence`, `SeasonalNaive`, `Level`). They are fitted here to a part
        of the history; fit the chosen one to all of it before use.
    history : Array, shape (n_intervals,), or Series
        Counts, oldest first; NaN = missing.
    horizon : int
        Steps ahead that matter, >= 1: one cold start.

    Raises
    ------
    ValueError
        If no candidate is naive, or the history is too short to score any.
    """
    naive = [name for name, each in candidates.items() if isinstance(each, NAIVE)]
    if not naive:
        raise ValueError(f"need a naive candidate to fall back to, got {sorted(candidates)}")
    if horizon < 1:
        raise ValueError(f"need horizon >= 1 step, got {horizon}")
    checked_history(history)
    losses, errors, left_out = _losses(candidates, history, horizon)
    if not losses:
        raise ValueError(f"no candidate can be judged on {len(history)} counts: {'; '.join(left_out)}")
    best = min(losses, key=losses.__getitem__)
    best_naive = min((name for name in naive if name in losses), key=losses.__getitem__, default=None)
    chosen = best
    holding = [
        name for name in losses if candidates[name].holds_the_naive and not _clear(losses, errors, best, name)
    ]
    if holding:
        chosen = min(holding, key=losses.__getitem__)
    elif best_naive is not None and losses[best] >= (1 - MARGIN) * losses[best_naive]:
        chosen = best_naive
    return Selection(chosen, losses, _reason(chosen, best, best_naive, losses, left_out, horizon))


def _clear(losses: Mapping[str, float], errors: Mapping[str, float], better: str, worse: str) -> bool:
    """Whether one is better than the other by more than chance; of what is never wrong nothing is better."""
    by_chance = CLEARLY * math.hypot(errors[better], errors[worse])
    return losses[better] == 0 or losses[worse] - losses[better] > by_chance


def _losses(
    candidates: Mapping[str, Forecaster], history: History, horizon: int
) -> tuple[dict[str, float], dict[str, float], list[str]]:
    """Return the losses of those that could be judged, their standard errors, and why others could not."""
    warm_up = max(int(len(history) * WARM_UP_SHARE), 1)
    stride = max((len(history) - warm_up) // ORIGINS_MAX, 1)
    losses, errors, left_out = {}, {}, []
    for name, candidate in candidates.items():
        try:
            (score,) = backtest({name: candidate}, history, [horizon], warm_up, stride)[name]
        except ValueError as error:
            left_out.append(f"{name}: {error}")
            continue
        if math.isfinite(score.pinball_90):
            losses[name] = score.pinball_90
            errors[name] = score.pinball_90_error
        else:
            left_out.append(f"{name}: no count is known to judge it by")
    return losses, errors, left_out


def _reason(
    chosen: str,
    best: str,
    best_naive: str | None,
    losses: Mapping[str, float],
    left_out: list[str],
    horizon: int,
) -> str:
    at = f"{horizon} step ahead" if horizon == 1 else f"{horizon} steps ahead"
    loss = f"loss {losses[chosen]:.3g} {at}"
    if best_naive is None:
        sentence = f"{chosen}: {loss}; no naive one could be judged"
    elif chosen == best_naive and losses[best] < losses[chosen]:
        gain = 1 - losses[best] / losses[chosen]
        sentence = f"{chosen}: {loss}; {best} is better by {gain:.1%} only, not worth its trouble"
    elif chosen == best_naive:
        sentence = f"{chosen}: {loss}; nothing does better than this naive one"
    elif losses[chosen] >= losses[best_naive]:
        sentence = f"{chosen}: {loss}; {best_naive}, which it holds within, is not clearly better"
    else:
        gain = 1 - losses[chosen] / losses[best_naive]
        sentence = f"{chosen}: {loss}, {gain:.0%} less than {best_naive}, the best naive one"
    return sentence + (f"; not judged: {'; '.join(left_out)}" if left_out else "") + "."
