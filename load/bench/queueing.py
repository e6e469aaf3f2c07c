"""How fast the queueing formulas are, beside pyworkforce in the same run: `python -m load.bench.queueing`.

Both compute P(W > t) of M/M/c and the fewest servers for P(W > t) <= 1 - q, for the same pools. pyworkforce
is not a dependency of this project: where it cannot be imported, ours is measured alone, and how to get the
other is said. Each time is the shortest of several runs.
"""

import importlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from autoscaler.queueing.elementwise import Array
from autoscaler.queueing.staffing import servers_for_wait, servers_for_wait_each, servers_for_wait_mixture
from autoscaler.queueing.waiting import wait_tail

POOLS = 1000
NODES = 81
"""Rates by which the controller knows a forecast."""

SERVICE_TIME, WAIT_SECONDS, WAIT_QUANTILE = 180.0, 20.0, 0.8
"""A call centre's objective, for which pyworkforce is made: 80 % within 20 s, calls of 3 minutes [s]."""

HOW_TO_GET_THE_PEER = (
    "pyworkforce cannot be imported ({error}): ours alone. To compare, install it into a folder of its own, "
    "pip install --target DIR pyworkforce, and run with PYTHONPATH=DIR."
)


def seconds(work: Callable[[], object], repeats: int = 7) -> float:
    """Shortest duration [s] of `work`."""
    shortest = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        shortest = min(shortest, time.perf_counter() - start)
    return shortest


class Peer:
    """pyworkforce, asked the same questions. Its unit of time is the minute."""

    def __init__(self) -> None:
        self._erlang_c: Any = importlib.import_module("pyworkforce.queuing").ErlangC

    def size(self, load: float) -> int:
        """Servers for the objective at `load` [erlang]."""
        return int(self._queue(load).required_positions(service_level=WAIT_QUANTILE)["raw_positions"])

    def wait_tail(self, load: float, servers: float) -> float:
        """P(W > WAIT_SECONDS)."""
        return 1.0 - float(self._queue(load).service_level(int(servers), scale_positions=False))

    def _queue(self, load: float) -> Any:
        minutes = SERVICE_TIME / 60.0
        return self._erlang_c(
            transactions=load * 30 / minutes, aht=minutes, asa=WAIT_SECONDS / 60.0, interval=30
        )


@dataclass(frozen=True, slots=True)
class Work:
    """The same thing done by both: ours `count` times, theirs `peer_count` times."""

    name: str
    count: int
    ours: Callable[[], object]
    peer_count: int = 0
    theirs: Callable[[Peer], object] | None = None


def beside_the_peer(name: str, loads: Array) -> list[Work]:
    """Evaluations and sizings of pools with these loads [erlang]; the peer does every twentieth."""
    rates, servers, few = loads / SERVICE_TIME, np.ceil(loads * 1.1), slice(None, None, 20)
    some, some_servers = loads[few].tolist(), servers[few].tolist()

    def theirs_sized(peer: Peer) -> object:
        return [peer.size(load) for load in some]

    def theirs_evaluated(peer: Peer) -> object:
        return [peer.wait_tail(load, c) for load, c in zip(some, some_servers, strict=True)]

    return [
        Work(
            f"P(W > t), {len(loads)} pools of {name}",
            len(loads),
            lambda: wait_tail(servers, rates, SERVICE_TIME, WAIT_SECONDS),
            len(some),
            theirs_evaluated,
        ),
        Work(
            f"sizing, {len(loads)} pools of {name}",
            len(loads),
            lambda: servers_for_wait_each(rates, SERVICE_TIME, WAIT_SECONDS, WAIT_QUANTILE),
            len(some),
            theirs_sized,
        ),
        Work(
            f"sizing, one pool of {name} at a time",
            len(some),
            lambda: [
                servers_for_wait(r, SERVICE_TIME, WAIT_SECONDS, WAIT_QUANTILE) for r in rates[few].tolist()
            ],
            len(some),
            theirs_sized,
        ),
    ]


def for_a_forecast(load: float) -> Work:
    """Servers for a distribution of rates, which the peer does not know."""
    rates, weights = np.exp(np.linspace(-0.5, 0.5, NODES)) * load / 10.0, np.full(NODES, 1.0 / NODES)
    return Work(
        f"sizing for {NODES} rates around {load:,.0f} erlangs",
        1,
        lambda: servers_for_wait_mixture(rates, weights, 10.0, 5.0, 0.99),
    )


def report(peer: Peer | None) -> Table:
    """Measure ours, and theirs if it is there."""
    rng = np.random.default_rng(0)
    table = Table("work", "time", "a second", "pyworkforce a second", "ratio")
    for work in [
        *beside_the_peer("5–100 erlangs", rng.uniform(5.0, 100.0, POOLS)),
        *beside_the_peer("100–5,000 erlangs", rng.uniform(100.0, 5000.0, POOLS)),
        for_a_forecast(10.0),
        for_a_forecast(100.0),
        for_a_forecast(100_000.0),
    ]:
        ours = seconds(work.ours) / work.count
        row = [work.name, f"{ours * work.count * 1e3:.3f} ms", f"{1 / ours:,.0f}"]
        if peer and work.theirs:
            theirs = seconds(partial(work.theirs, peer), 3) / work.peer_count
            row += [f"{1 / theirs:,.0f}", f"{theirs / ours:,.1f} x"]
        table.add_row(*row)
    return table


def agreement(peer: Peer) -> str:
    """Where both are asked for servers, what each says."""
    loads = np.linspace(5.0, 100.0, 96)
    ours = servers_for_wait_each(loads / SERVICE_TIME, SERVICE_TIME, WAIT_SECONDS, WAIT_QUANTILE)
    theirs = np.array([peer.size(load) for load in loads])
    return f"Both find the same number of servers for {np.sum(ours == theirs)} of {len(loads)} loads."


def main() -> None:
    """Print the table."""
    console = Console()
    try:
        peer = Peer()
    except ImportError as error:
        console.print(HOW_TO_GET_THE_PEER.format(error=error))
        console.print(report(None))
        return
    console.print(report(peer))
    console.print(agreement(peer))


if __name__ == "__main__":
    main()
