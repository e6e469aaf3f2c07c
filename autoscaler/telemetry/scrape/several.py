"""One signal of a pool from the readings of its exporters, some of which may be silent.

A missing exporter is not a zero: a sum is taken as if the silent ones read as the others do on average. With
fewer than half of them heard there is no value at all.
"""

from collections.abc import Sequence

from autoscaler.telemetry.scrape.reading import SignalReading
from autoscaler.telemetry.scrape.source import AddUp

HEARD_MIN = 0.5
"""Share of the exporters that must have a fresh reading."""


def combined(readings: Sequence[SignalReading], how: AddUp, now: float, age_max: float) -> SignalReading:
    """Return the reading of the pool; the age is that of the oldest one used.

    Parameters
    ----------
    age_max : float
        An older reading counts as silence [s].
    """
    fresh = [each for each in readings if each.is_fresh(now, age_max)]
    faults = [each.fault for each in readings if each.fault]
    if not fresh or len(fresh) < HEARD_MIN * len(readings):
        heard = f"{len(fresh)} of {len(readings)} exporters heard"
        return SignalReading(fault="; ".join([heard, *faults[:1]]))
    values = [each.value for each in fresh]
    if how is AddUp.MAX:
        value = max(values)
    else:
        value = sum(values) / len(values) * (len(readings) if how is AddUp.SUM else 1)
    return SignalReading(
        value, min(each.read_at for each in fresh), faults[0] if faults else "", fresh[0].declared
    )
