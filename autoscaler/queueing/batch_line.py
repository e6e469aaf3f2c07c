"""How long a batch takes, as a line in its size.

Apart from `bulk`, so that whoever only dispatches needs no numpy.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from autoscaler.queueing.elementwise import Array

Size = TypeVar("Size", float, "Array")


@dataclass(frozen=True, slots=True)
class BatchLine:
    """How long a batch takes: s(n) = alpha + beta n [s]."""

    alpha: float
    """Time of a batch that does not depend on its size, >= 0 [s]."""
    beta: float
    """Time that each request adds, >= 0 [s]."""

    def __post_init__(self) -> None:
        if min(self.alpha, self.beta) < 0 or self.alpha + self.beta <= 0:
            raise ValueError(f"need alpha, beta >= 0, not both 0, got {self.alpha}, {self.beta}")

    def service_time(self, size: Size) -> Size:
        """s(size) [s]."""
        return self.alpha + self.beta * size
