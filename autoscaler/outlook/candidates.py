"""Which forecasters stand for election: those that the program itself chooses from (`forecasting.chosen`)."""

from autoscaler.outlook.found import Found
from forecasting.chosen import Chosen
from forecasting.forecaster import Forecaster
from forecasting.naive import Level, Persistence
from forecasting.seasons import DAY, WEEK

PERSISTENCE, LEVEL = "persistence", "level"
SEASONAL_DAY, SEASONAL_WEEK = "seasonal naive, day", "seasonal naive, week"
SEASONAL = (SEASONAL_DAY, SEASONAL_WEEK)
NAIVE = (PERSISTENCE, *SEASONAL, LEVEL)
FLAT = (PERSISTENCE, LEVEL)
"""They say the same of every step ahead."""


def candidates(found: Found, known: int, zone: str) -> dict[str, Forecaster]:
    """Return the forecasters, by name, that `known` intervals are enough for.

    Parameters
    ----------
    zone : str
        Whose clocks people follow, such as "Europe/Berlin".
    """
    day, week = found.length(DAY), found.length(WEEK)
    if day < 2:
        return {PERSISTENCE: Persistence(), LEVEL: Level()}
    season = {SEASONAL_DAY: day, SEASONAL_WEEK: week}
    standing = Chosen(day, zone=zone).candidates()
    return {name: each for name, each in standing.items() if known > season.get(name, 0)}
