"""Whether a mean over a replay agrees with theory."""

import numpy as np

_PIECES = 20
_WARM_UP = 0.05
"""Share of the requests, the first, that are left out: the replay begins empty."""
_STANDARD_ERRORS = 4.0


def agrees(values: np.ndarray, expected: float, tolerance: float = 0.0) -> bool:
    """Say whether the mean lies within 4 standard errors; `tolerance` is for theory that approximates [1].

    Raises
    ------
    ValueError
        If the standard error is above a tenth of what is expected: such a test could hardly fail.
    """
    pieces = np.array_split(values[round(_WARM_UP * len(values)) :], _PIECES)
    means = np.array([piece.mean() for piece in pieces])
    error = means.std(ddof=1) / np.sqrt(_PIECES)
    if error > 0.1 * expected:
        raise ValueError(f"a standard error of {error:.3g} is too large for {expected:.3g}; replay longer")
    difference = abs(float(means.mean()) - expected)
    print(f"mean {means.mean():.5g}, standard error {error:.2g}, expected {expected:.5g}")  # seen if it fails
    return bool(difference <= _STANDARD_ERRORS * error + tolerance * expected)
