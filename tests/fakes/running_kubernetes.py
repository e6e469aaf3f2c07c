"""A platform `kubernetes` on a cluster of the test, with a clock that the test moves."""

import asyncio
from random import Random

import pytest

from autoscaler.clock import VirtualClock
from autoscaler.platforms.kubernetes import Kubernetes, KubernetesOptions
from autoscaler.remote_fleet import RemoteFleetOptions
from tests.fakes.kubernetes_api import FakeCluster
from tests.fakes.listed_servers import ScriptedServers
from tests.fakes.replica_listener import FakeReplicaListener

URL = "http://127.0.0.1:9001"


class RunningKubernetes:
    """A cluster, a platform on it, and what the platform told."""

    def __init__(self, cluster, tmp_path, **given):
        self.cluster = cluster
        self.clock = VirtualClock(wall_time=cluster.wall_time)
        fleet = RemoteFleetOptions(state_dir=tmp_path / "state", probe_interval=0.001)
        given.setdefault("kubeconfig", cluster.kubeconfig(tmp_path))
        options = KubernetesOptions(name="chat", service="chat", fleet=fleet, kind=cluster.kind, **given)
        self.platform = Kubernetes(options, ScriptedServers(URL), self.clock, Random(1))
        self.listener = FakeReplicaListener()

    def pass_time(self, seconds):
        self.clock.move_to(self.clock.now() + seconds)
        self.cluster.wall_time += seconds

    async def counts(self):
        fleet = await self.platform.fleet()
        return fleet.ready, fleet.starting, fleet.draining

    async def until(self, condition, timeout=20.0):
        async with asyncio.timeout(timeout):
            while not condition():
                await asyncio.sleep(0.002)

    async def until_seen(self, pods):
        await self.until(lambda: len(self.platform._sight.live_pods) == pods)

    async def until_counts(self, *wanted):
        seen = None
        try:
            async with asyncio.timeout(20):
                while (seen := await self.counts()) != wanted:
                    await asyncio.sleep(0.002)
        except TimeoutError:
            pytest.fail(f"waited for {wanted}, it stayed {seen}")


def ready_cluster(replicas, **given):
    cluster = FakeCluster(replicas, **given)
    cluster.run()
    return cluster
