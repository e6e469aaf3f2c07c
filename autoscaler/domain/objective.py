"""What the user wants: a wait that is kept, and GPUs that are neither idle nor swamped."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Objective:
    """The utilization band and the wait objective, to be kept together.

    Attributes
    ----------
    utilization_low, utilization_high : float
        The band in which busy slots / slots shall lie, in (0, 1) [1]. With an upper edge of 1 there is none:
        the wait alone decides, which is lean, cheaper where fleets are large, and less calm.
    wait_seconds : float
        The wait that is still good [s].
    wait_quantile : float
        Fraction of requests that must not wait longer, in (0, 1) [1].
    """

    utilization_low: float = 0.60
    utilization_high: float = 0.75
    wait_seconds: float = 5.0
    wait_quantile: float = 0.99

    def __post_init__(self) -> None:
        if not 0 < self.utilization_low < self.utilization_high <= 1:
            raise ValueError(
                f"need 0 < utilization_low < utilization_high <= 1, "
                f"got {self.utilization_low}, {self.utilization_high}"
            )
        if self.wait_seconds < 0:
            raise ValueError(f"need wait_seconds >= 0, got {self.wait_seconds}")
        if not 0 < self.wait_quantile < 1:
            raise ValueError(f"need 0 < wait_quantile < 1, got {self.wait_quantile}")
