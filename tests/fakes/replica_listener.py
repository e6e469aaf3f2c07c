"""A request path that only remembers what a platform tells it; the test says which slots are busy."""

import asyncio
from collections.abc import Callable, Mapping

from autoscaler.ports import Replica


class FakeReplicaListener:
    """Keeps the replicas as the proxy would, and the calls in their order as (verb, replica id)."""

    def __init__(self) -> None:
        self.ready: dict[str, Replica] = {}
        self.draining: dict[str, Replica] = {}
        self.busy: dict[str, int] = {}
        self.calls: list[tuple[str, str]] = []
        self.probes: list[tuple[str, bool]] = []
        self._called = asyncio.Event()

    def replica_ready(self, replica: Replica) -> None:
        self.draining.pop(replica.id, None)
        self.ready[replica.id] = replica
        self._note("ready", replica.id)

    def replica_draining(self, replica_id: str) -> None:
        self.draining[replica_id] = self.ready.pop(replica_id)
        self._note("draining", replica_id)

    def replica_lost(self, replica_id: str) -> None:
        self.ready.pop(replica_id, None)
        self.draining.pop(replica_id, None)
        self._note("lost", replica_id)

    def replica_probed(self, replica_id: str, ok: bool) -> None:
        self.probes.append((replica_id, ok))

    def busy_slots(self) -> Mapping[str, int]:
        return self.busy

    async def until(self, condition: Callable[[], bool], timeout: float = 30.0) -> None:
        """Wait until a call has made `condition` true; TimeoutError after `timeout` [s]."""
        async with asyncio.timeout(timeout):
            while not condition():
                self._called.clear()
                await self._called.wait()

    def _note(self, verb: str, replica_id: str) -> None:
        self.calls.append((verb, replica_id))
        self._called.set()
