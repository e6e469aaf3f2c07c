"""Options of batching."""

from dataclasses import dataclass
from typing import Literal

Mode = Literal["auto", "on", "off"]


@dataclass(frozen=True, slots=True)
class BatchingOptions:
    """Whether requests of a pool are merged, and how many."""

    mode: Mode = "auto"
    """`auto` merges where the server says that the model takes batches and does not make them itself; `on`
    merges also where it does (Triton's dynamic batching); `off` merges nothing."""
    rows_max: int | None = None
    """No call has more rows [1]; None: as many as the model takes. Set it for a server that does not tell."""
    check_ratio: float = 0.0
    """In so many of all batches one request is served once more, alone, and its answers compared [1]. Numbers
    may differ in their last digits by the size of a batch; set 0.01 to learn by how much a model's do."""

    def __post_init__(self) -> None:
        if self.rows_max is not None and self.rows_max < 1:
            raise ValueError(f"need rows_max >= 1, got {self.rows_max}")
        if not 0 <= self.check_ratio <= 1:
            raise ValueError(f"need check_ratio in 0..1, got {self.check_ratio}")
