"""What is lost where several proxies share a fleet, against one queue: `python -m load.bench shares`.

The same requests, with the same service times, wait in one queue; at proxies between which the slots were
divided once, evenly, by hand; and at proxies between which the controller divides them twice a second. A wait
is given in seconds, so that it can be compared with an objective.
"""

from collections.abc import Callable

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from autoscaler.sharing.teller import INTERVAL
from load.bench.shares_simulation import Floats, SharedFleet, waits

FLEETS = {
    "4 servers of 32 slots, 10 s": SharedFleet(4, 32, 10.0, 0.75),
    "8 servers of 4 slots, 4 s": SharedFleet(8, 4, 4.0, 0.7),
    "8 servers of 1 slot, 8 s": SharedFleet(8, 1, 8.0, 0.7),
    "8 servers of 4 slots, 100 ms": SharedFleet(8, 4, 0.1, 0.7),
}
PROXIES = 3
_SHIFT = 60.0
"""Where the load moves, it does so after so long [s]."""


def at_random(at: float, rng: np.random.Generator) -> int:
    """Send each request anywhere."""
    return int(rng.integers(PROXIES))


def unevenly(at: float, rng: np.random.Generator) -> int:
    """Send six of ten to one, three to another, one to the last."""
    return int(np.searchsorted((0.6, 0.9), rng.random(), side="right"))


def moving(at: float, rng: np.random.Generator) -> int:
    """Send unevenly, and each minute most to another."""
    return (unevenly(at, rng) + int(at // _SHIFT)) % PROXIES


SPREADS: dict[str, Callable[[float, np.random.Generator], int]] = {
    "at random": at_random,
    "6:3:1": unevenly,
    "6:3:1, moving": moving,
}


def main() -> None:
    """Simulate every fleet with every spread, and print the table."""
    console = Console()
    table = Table(
        title=f"Waits at {PROXIES} proxies before one fleet: mean / 99 % quantile", title_justify="left"
    )
    table.add_column("fleet, mean service")
    table.add_column("requests go")
    for name in ("one queue", "by hand", f"divided each {INTERVAL:g} s", "each 2 s"):
        table.add_column(name, justify="right")
    for (name, fleet), (spread_name, spread) in track(
        [(fleet, spread) for fleet in FLEETS.items() for spread in SPREADS.items()],
        console=Console(stderr=True),
        description="simulating",
    ):
        one = waits(fleet, 1, spread, None)
        rows = [waits(fleet, PROXIES, spread, interval) for interval in (None, INTERVAL, 2.0)]
        table.add_row(name, spread_name, *(_shown(each) for each in (one, *rows)))
    console.print(table)


def _shown(each: Floats) -> str:
    return f"{each.mean():.2f} / {np.quantile(each, 0.99):.1f} s"
