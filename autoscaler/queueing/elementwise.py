"""One formula for a single number and for an array of them.

Formulas of this package take numbers, numpy arrays, or a mixture that broadcasts. Numbers alone give a
number; as soon as one argument is an array, so is the answer. Numbers stay numbers all the way, since plain
arithmetic is many times as fast as an array of one element. The functions below are what differs.
"""

import math
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Number = TypeVar("Number", float, Array)
"""Arguments are `Number | float`: a call with floats only is a float to the type checker, too."""


def value(given: Any) -> Any:
    """Return a number as a float, and all else as an array of them."""
    return float(given) if isinstance(given, (float, int)) else np.asarray(given, dtype=float)


def result(values: Any) -> Any:
    """Hand back an array as it is, and an array without dimensions as a plain number."""
    return float(values) if isinstance(values, float) or not values.ndim else values


def everywhere(condition: Any) -> bool:
    """Return whether `condition` holds for every element."""
    return condition if isinstance(condition, bool) else bool(np.all(condition))


def require(condition: Any, requirement: str, *given: Any) -> None:
    """Raise ValueError unless `condition` holds for every element; say what is needed and what was given."""
    if not everywhere(condition):
        raise ValueError(f"need {requirement}, got {', '.join(str(value) for value in given)}")


def exp(x: Any) -> Any:
    """Return e^x, for x that does not overflow."""
    return math.exp(x) if isinstance(x, float) else np.exp(x)


def log(x: Any) -> Any:
    """Return the logarithm of x >= 0; of 0 it is -inf."""
    if isinstance(x, float):
        return math.log(x) if x > 0 else -math.inf
    with np.errstate(divide="ignore"):
        return np.log(x)


def larger(x: Any, y: Any) -> Any:
    """Return the larger of two."""
    return max(x, y) if isinstance(x, float) and isinstance(y, float) else np.maximum(x, y)


def smaller(x: Any, y: Any) -> Any:
    """Return the smaller of two."""
    return min(x, y) if isinstance(x, float) and isinstance(y, float) else np.minimum(x, y)


def ratio(x: Any, y: Any) -> Any:
    """Return x / y, and inf where y is 0."""
    if isinstance(x, float) and isinstance(y, float):
        return x / y if y else math.inf
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(y == 0, np.inf, x / y)
