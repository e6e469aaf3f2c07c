"""Fits of the seasonal forecast: jobs that can run anywhere, and what they give back."""

import pickle
from dataclasses import dataclass

import numpy as np

from forecasting.forecaster import Forecaster
from forecasting.series import Series


@dataclass(frozen=True, slots=True)
class Fitted:
    """What a fit gave: a forecaster that has learned up to bin `until`, or why there is none."""

    forecaster: Forecaster | None
    until: int
    failure: str = ""


def fit(template: bytes, history: Series, until: int) -> Fitted:
    """Fit a forecaster, given as a pickle, on `history`; runs anywhere, also elsewhere."""
    try:
        return Fitted(pickle.loads(template).fit(history), until)
    except (ValueError, ArithmeticError, np.linalg.LinAlgError) as error:
        return Fitted(None, until, str(error))
