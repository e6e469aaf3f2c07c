"""The contract of all forecasters.

    fit(history)       learn from the past, oldest count first; may be slow
    update(count)      learn one more count; O(1), between fits
    forecast(horizon)  one predictive distribution per step ahead, in counts per interval

Parameters go into `__init__` and keep their names; what is learned ends in `_`. Hence the state of
any forecaster is plain data (numbers, strings, lists, dicts; no NaN), and restoring it gives
identical forecasts. A missing count is NaN: time moves on, nothing is learned.

A history is an array, or a `Series` where it matters when it was: then seasons follow the wall clock.
"""

import inspect
import math
from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np

from forecasting.distribution import MEAN_MAX, Array, PredictiveDistribution
from forecasting.series import Series

History = Array | Series
"""Counts per interval, oldest first, shape (n_intervals,); NaN = missing."""

Plain = Any
"""None, bool, int, float, str, or lists and dicts of them."""


class Stateful:
    """Something whose state is its parameters (arguments of `__init__`) and what it learned (`…_`)."""

    def to_state(self) -> dict[str, Plain]:
        """Return parameters and learned state as plain data, fit for JSON."""
        parameters = list(inspect.signature(type(self)).parameters)
        learned = [name for name in vars(self) if name.endswith("_") and not name.startswith("_")]
        return {
            "kind": type(self).__name__,
            "parameters": {name: _plain(getattr(self, name)) for name in parameters},
            "learned": {name: _plain(getattr(self, name)) for name in learned},
        }

    @classmethod
    def from_state(cls, state: dict[str, Plain]) -> Self:
        """Restore what `to_state` of the same class has returned.

        Raises
        ------
        ValueError
            If the state is of another kind, or lacks something.
        """
        if state.get("kind") != cls.__name__:
            raise ValueError(f"this is the state of {state.get('kind')!r}, not of {cls.__name__!r}")
        restored = cls(**{name: _parameter(value) for name, value in state["parameters"].items()})
        expected = {name for name in vars(restored) if name.endswith("_") and not name.startswith("_")}
        if expected != set(state["learned"]):
            found = sorted(state["learned"])
            raise ValueError(f"the state of {cls.__name__} has {found}, needs {sorted(expected)}; fit anew")
        for name, value in state["learned"].items():
            setattr(restored, name, _restored(value, getattr(restored, name)))
        return restored


class Forecaster(Stateful, ABC):
    """Turns a history of counts into predictive distributions of the next ones."""

    holds_the_naive = False
    """Whether the naive ones are special cases of it, which a fit can find."""

    @abstractmethod
    def fit(self, history: History) -> Self:
        """Forget what was learned and learn from `history`.

        Parameters
        ----------
        history : Array, shape (n_intervals,), or Series
            Counts per interval, oldest first; NaN = missing. A series also says when they were.

        Raises
        ------
        ValueError
            If there is too little of it for this forecaster, or a count is negative or infinite.
        """

    @abstractmethod
    def update(self, count: float) -> None:
        """Learn the count of the interval that has just ended; NaN if it is not known."""

    @abstractmethod
    def forecast(self, horizon: int) -> list[PredictiveDistribution]:
        """Return the distributions of the counts of the next `horizon` >= 1 intervals.

        Raises
        ------
        ValueError
            If nothing has been learned yet, or `horizon` < 1.
        """

    def at(self, step: int) -> PredictiveDistribution:
        """Return the distribution of the count `step` >= 1 intervals ahead alone; see `forecast`."""
        return self.forecast(step)[-1]


def checked_history(history: History) -> Array:
    """Return the history as a float array of one dimension; raise ValueError if it is none."""
    counts = np.asarray(history.values if isinstance(history, Series) else history, dtype=float)
    if counts.ndim != 1:
        raise ValueError(f"need a history of one dimension, got shape {counts.shape}")
    bad = np.flatnonzero(np.isinf(counts) | (counts < 0))
    if bad.size:
        raise ValueError(f"need finite counts >= 0 (NaN = missing), got {counts[bad[0]]} at index {bad[0]}")
    return np.asarray(np.minimum(counts, MEAN_MAX))


def checked_count(count: float) -> float:
    """Return the count as it is if it is >= 0 or NaN; raise ValueError otherwise."""
    if not (0 <= count < math.inf or math.isnan(count)):
        raise ValueError(f"need a finite count >= 0, or NaN if it is missing, got {count}")
    return min(float(count), MEAN_MAX)


def restore(state: dict[str, Plain]) -> Any:
    """Return what had this state, whatever its kind.

    Raises
    ------
    ValueError
        If no such kind is known here: its module was not imported.
    """
    kinds = [Stateful]
    for kind in kinds:  # grows as it goes
        if kind.__name__ == state.get("kind"):
            return kind.from_state(state)
        kinds.extend(kind.__subclasses__())
    raise ValueError(f"no kind {state.get('kind')!r} is known here; import its module first")


def _parameter(value: Plain) -> Any:
    """Restore what was given to `__init__`: plain data, or something with a state."""
    if isinstance(value, list):
        return [_parameter(each) for each in value]
    return restore(value) if isinstance(value, dict) and "kind" in value else value


def _plain(value: Any) -> Plain:
    if isinstance(value, Stateful):
        return value.to_state()
    if isinstance(value, np.ndarray):
        return [_plain(each) for each in value.tolist()]
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float) and math.isnan(value):
        return None
    return value


def _restored(value: Plain, fresh: Any) -> Any:
    """Give `value` the type that the attribute has in a fresh object; None stands for NaN."""
    if isinstance(fresh, Stateful):
        return restore(value)
    if isinstance(fresh, np.ndarray):
        return np.array(value, dtype=fresh.dtype)
    if isinstance(fresh, float):
        return float("nan") if value is None else float(value)
    return value
