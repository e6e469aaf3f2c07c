"""One formula for a single number and for an array of them.

Formulas of this package take numbers, numpy arrays, or a mixture that broadcasts. Numbers alone give a
number; as soon as one argument is an array, so is the answer.
"""

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Number = TypeVar("Number", float, Array)
"""Arguments are `Number | float`: a call with floats only is a float to the type checker, too."""


def result(values: Array) -> Any:
    """Hand back an array as it is, and an array without dimensions as a plain number."""
    return values.item() if values.ndim == 0 else values


def require(condition: Any, requirement: str, *given: Any) -> None:
    """Raise ValueError unless `condition` holds for every element; say what is needed and what was given."""
    if not np.all(condition):
        raise ValueError(f"need {requirement}, got {', '.join(str(value) for value in given)}")
