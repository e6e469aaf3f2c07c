"""One run of the law test: the product in a process of its own, and one case after the other through it."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np

from load.arrivals import poisson
from load.bench.queue_simulation import Law
from load.demo.program import Program
from load.free_port import free_address
from load.law.judge import Case, Verdict, judge
from load.law.recursion import Floats
from load.law.wire import Clients, ModelServer, Seen

ROOT = Path(__file__).parents[2]
READY_WITHIN = 60.0  # [s]
QUEUE_MAX = 100_000
_STRATUM = 101

LAWS = (("M/M/c", 1.0), ("M/D/c", 0.0), ("M/G/c", 4.0))
UTILIZATIONS = (0.5, 0.8, 0.95)


def cases(servers: int, service: float) -> list[Case]:
    """Return every case, the calm ones first."""
    return [Case(name, scv, servers, service, rho) for rho in UTILIZATIONS for name, scv in LAWS]


async def run(
    todo: list[Case], seconds: float, seed: int, tell: Callable[[Verdict], None] = lambda verdict: None
) -> list[Verdict]:
    """Measure and judge every case, each for `seconds`; `tell` each as it is done.

    Raises
    ------
    ProgramFailed
        If the product does not start, or ends.
    TimeoutError
        If it does not get ready, or leaves requests without an answer.
    """
    verdicts: list[Verdict] = []
    excess = 0.0
    server = _Server()
    async with server.listening() as url, _program(url, todo[0].servers) as port:
        for number, case in enumerate(todo):
            rng = np.random.default_rng((seed, number))
            arrivals = poisson(case.arrival_rate(excess), seconds, rng)
            services = drawn_evenly(case.law(), arrivals.size, rng)
            seen = server.seen = Seen.nothing(arrivals.size)
            await Clients(port, seen).run(arrivals, services)
            if set(seen.statuses) != {200}:
                raise RuntimeError(f"{case.name} at {case.utilization}: answers were {seen.statuses}")
            ordered = seen.in_order_of_arrival()
            verdicts.append(await asyncio.to_thread(judge, case, ordered, services, rng))
            excess = verdicts[-1].excess
            tell(verdicts[-1])
    return verdicts


def drawn_evenly(law: Law, count: int, rng: np.random.Generator) -> Floats:
    """Draw times of a law so that each part of it comes as often as it should; shape (count,) [s].

    Stratified: of a hundred times as many draws, sorted, every hundredth is taken, in random order. The order
    is by chance and the moments are not, so a heavy tail has its share in a run of minutes, too.
    """
    many = np.sort(law(rng, (_STRATUM, count)).ravel())
    return rng.permutation(many[_STRATUM // 2 :: _STRATUM])


class _Server:
    """The model server, which writes down what belongs to the case at hand."""

    def __init__(self) -> None:
        self.seen = Seen.nothing(0)

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[str]:
        """Listen within; yields the base URL."""
        loop = asyncio.get_running_loop()
        listener = await loop.create_server(lambda: ModelServer(lambda: self.seen), "127.0.0.1", 0)
        try:
            yield f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
        finally:
            listener.close()


@asynccontextmanager
async def _program(server: str, slots: int) -> AsyncIterator[int]:
    """Run the product before one replica with so many slots; yields its port when it is ready."""
    with tempfile.TemporaryDirectory(prefix="autoscaler-law-") as folder:
        listen, admin = free_address(), free_address()
        configuration: dict[str, Any] = {
            "listen": listen,
            "admin": admin,
            "history": str(Path(folder) / "history.db"),
            "pools": {
                "law": {
                    "slots_per_replica": slots,
                    "queue": {"requests_max": QUEUE_MAX, "wait_max": "10m"},
                    "platform": {"kind": "static", "urls": [server]},
                }
            },
        }
        async with Program(configuration, Path(folder), ROOT) as program:
            async with asyncio.timeout(READY_WITHIN):
                await program.ready()
            yield int(listen.rpartition(":")[2])
