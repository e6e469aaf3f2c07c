"""Compares what a model answers in a batch with what it answers to the same request alone, now and then.

The sum of many products depends on the order in which they are added, and that on the size of the batch: so
answers of a model may differ in their last digits (1e-6 of their size in single precision is usual). More is
a model that mixes rows.
"""

import numpy as np
import structlog

from autoscaler.kserve.infer import InferAnswer
from autoscaler.kserve.layout import FORMATS
from autoscaler.kserve.tensor import Tensor

log = structlog.get_logger(__name__)

TOLERANCE = 1e-3
"""A difference above this part of the largest value is warned of [1]."""


class Check:
    """Decides which batch is checked, evenly spread, and keeps what was found.

    Parameters
    ----------
    ratio : float
        Of all batches [1].
    """

    def __init__(self, ratio: float) -> None:
        self._ratio = ratio
        self._owed = 0.0
        self.compared = 0
        """Requests that were served both ways [1]."""
        self.difference_max = 0.0
        """The largest difference seen, relative to the largest value of its tensor [1]; infinity for another
        shape, or other strings."""

    def is_due(self) -> bool:
        """Whether the next batch shall be checked."""
        self._owed += self._ratio
        if self._owed < 1:
            return False
        self._owed -= 1
        return True

    def compare(self, model: str, batched: InferAnswer, alone: InferAnswer) -> None:
        """Note how far the answers are apart."""
        by_name = {tensor.name: tensor for tensor in alone.outputs}
        apart = max(
            (_difference(tensor, by_name.get(tensor.name)) for tensor in batched.outputs), default=0.0
        )
        self.compared += 1
        self.difference_max = max(self.difference_max, apart)
        if apart > TOLERANCE:
            log.warning("a model answers otherwise in a batch than alone", model=model, difference=apart)


def _difference(one: Tensor, other: Tensor | None) -> float:
    if other is None or one.shape != other.shape or one.datatype != other.datatype:
        return float("inf")
    if bytes(one.data) == bytes(other.data):
        return 0.0
    code = FORMATS.get(one.datatype, "?")
    if code == "?":
        return float("inf")
    a, b = (np.frombuffer(tensor.data, f"<{code}").astype(float) for tensor in (one, other))
    with np.errstate(invalid="ignore"):
        apart, size = np.nanmax(np.abs(a - b)), np.nanmax(np.abs(a))
    return float(apart / size) if size > 0 else float(apart > 0)
