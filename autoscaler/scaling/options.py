"""The settings of the control path, in one value that is checked when it is made."""

from dataclasses import dataclass
from math import ceil

_HISTORY_BINS_MAX = 50_000
"""Half a year of 5 minutes; more makes a start slow and a fit no better [forecast intervals]."""


WAKE_DELAY = 0.1
"""An arrival that finds no replica, and none on its way, is decided on so soon [s], with its whole burst."""


@dataclass(frozen=True, slots=True)
class DecisionPolicy:
    """How the fleet may be moved, and what the forecast is made of."""

    replicas_min: int = 1
    """Never fewer [1]. 0 permits scale to zero, paid for by one cold start."""
    replicas_max: int = 1000
    """Never more [1]; set it to what the budget or the machine holds."""
    step_up_max: int | None = None
    """At most so many more in one decision [1]; None is no limit. Set it where starts disturb each other."""
    step_down_max: int | None = None
    """At most so many fewer in one decision [1]; None is no limit."""
    scale_down_hold: float = 120.0
    """What is let go must not be needed for one cold start and this [s]; longer is calmer, and dearer."""
    catch_up_time: float = 60.0
    """A backlog shall be gone after this, or after a cold start if that is longer [s]; shorter staffs it
    harder. What is ordered for it comes a cold start from now, so less would only arrive too late."""
    edit_hold: float = 0.0
    """A number of replicas that somebody else has set stands for so long, within the limits [s]; with 0 the
    next decision goes by the demand alone. Raise it where people scale by hand while they work on a thing."""
    service_memory: float = 1800.0
    """Service times older than this weigh less than 1/e [s]; shorten it where models change often."""
    forecast_interval: float = 300.0
    """Arrivals are counted for the forecast in bins of this length [s]."""
    season: float = 86_400.0
    """The demand repeats after this [s]: a day."""
    refit_interval: float = 86_400.0
    """The forecast model is fitted anew after this at the latest [s], and sooner while little is known: after
    a twentieth of the history. Between fits it is updated."""
    history_max: float = 28 * 86_400.0
    """Older arrivals are not used for a fit [s]; nor are more than 50,000 forecast intervals."""

    def __post_init__(self) -> None:
        if not 0 <= self.replicas_min <= self.replicas_max:
            raise ValueError(
                f"need 0 <= replicas_min <= replicas_max, got {self.replicas_min}, {self.replicas_max}"
            )
        if self.replicas_max < 1:
            raise ValueError(f"need replicas_max >= 1, got {self.replicas_max}")
        for name in ("step_up_max", "step_down_max"):
            step = getattr(self, name)
            if step is not None and step < 1:
                raise ValueError(f"need {name} >= 1 or None, got {step}")
        for name in ("scale_down_hold", "edit_hold"):
            if getattr(self, name) < 0:
                raise ValueError(f"need {name} >= 0, got {getattr(self, name)}")
        for name in ("catch_up_time", "service_memory", "forecast_interval", "refit_interval"):
            if getattr(self, name) <= 0:
                raise ValueError(f"need {name} > 0, got {getattr(self, name)}")
        if self.season < 2 * self.forecast_interval:
            raise ValueError(
                f"need season >= 2 forecast intervals, got {self.season} and {self.forecast_interval}"
            )
        if self.history_max < self.season:
            raise ValueError(f"need history_max >= season, got {self.history_max} and {self.season}")

    @property
    def history_bins(self) -> int:
        """Forecast intervals that are kept for a fit [1]."""
        return min(ceil(self.history_max / self.forecast_interval), _HISTORY_BINS_MAX)

    @property
    def season_length(self) -> int:
        """Forecast intervals in a season [1]."""
        return max(2, round(self.season / self.forecast_interval))
