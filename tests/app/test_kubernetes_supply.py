"""A pool of pods whose cluster has too few GPUs, and two programs that share it: the whole control path."""

import asyncio
from random import Random

import kubernetes_asyncio.config  # noqa: F401 - now, for it takes longer than these tests wait
import pytest

from autoscaler.clock import VirtualClock
from autoscaler.control_loop import ControlLoop, ControlOptions
from autoscaler.domain import Binding, Objective, Observation, Reason
from autoscaler.platforms.kubernetes import Kubernetes, KubernetesOptions
from autoscaler.remote_fleet import RemoteFleetOptions
from autoscaler.scaling import Controller, DecisionPolicy
from autoscaler.scaling.merge import side_by_side
from autoscaler.scaling.substitution import Substitution
from tests.fakes.kubernetes_api import FakeCluster
from tests.fakes.listed_servers import ScriptedServers
from tests.fakes.replica_listener import FakeReplicaListener


class Program:
    """A control loop and its platform in a cluster, on one clock; `tick` lets ten seconds pass.

    It `gives` what it cannot have to another pool, or `takes` that of another.
    """

    def __init__(self, cluster, folder, gives=None, takes=None, **policy):
        self.cluster, self.rate = cluster, 2.0
        self.gives, self.takes = gives, takes
        self.clock = VirtualClock(wall_time=cluster.wall_time)
        fleet = RemoteFleetOptions(state_dir=folder / "state", probe_interval=0.001)
        options = KubernetesOptions("chat", "chat", fleet, kubeconfig=cluster.kubeconfig(folder))
        servers = ScriptedServers("http://127.0.0.1:9001")
        self.platform = Kubernetes(options, servers, self.clock, Random(1))
        controller = Controller(Objective(wait_seconds=30.0), DecisionPolicy(**policy))
        self.loop = ControlLoop(
            "chat",
            controller,
            self.platform,
            self.observe,
            [],
            self.clock,
            ControlOptions(),
            self.run_fit,
            follow=self.follow,
        )

    def follow(self, observation, fleet, decision, now):
        if self.gives is not None:
            self.gives.decided(decision, fleet, now)
            self.gives.observed(observation)
        return decision

    async def run_fit(self, job, time_limit):
        return job()

    def observe(self, now, wall_time):
        arrivals, in_flight = round(10 * self.rate), round(7 * self.rate)
        own = Observation(
            10.0, arrivals, arrivals, 5.0 * arrivals, 50.0 * arrivals, in_flight, in_flight, 0, 0.0, wall_time
        )
        share = None if self.takes is None else self.takes.demand(10.0, wall_time, with_services=True)
        return own if share is None else side_by_side([own, share], 10.0, wall_time)

    async def tick(self, times=1):
        for _ in range(times):
            self.cluster.wall_time += 10.0
            self.clock.move_to(self.clock.now() + 10.0)
            self.cluster.reconcile()
            self.cluster.run()
            await asyncio.sleep(0.05)  # the watches tell it
            await self.loop.tick()

    @property
    def decision(self):
        return self.loop.state.decision


@pytest.fixture
async def program(tmp_path, monkeypatch):
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    cluster = FakeCluster(2, room=4)
    cluster.run()
    async with cluster:
        made = Program(cluster, tmp_path, scale_down_hold=60.0, edit_hold=60.0)
        await made.platform.start(FakeReplicaListener())
        yield made
        await made.platform.stop()


async def test_f6_pods_without_a_gpu_are_learned_within_a_minute_and_gone_a_tick_after_the_load(program):
    await program.tick(2)
    assert program.cluster.replicas > 10
    await program.tick(5)
    assert program.cluster.replicas == 4 + 1  # the room, and one probe
    assert (program.decision.reason, program.decision.binding) == (Reason.SUPPLY_SHORT, Binding.SUPPLY)
    await program.tick(5)
    assert program.cluster.replicas == 4 + 1
    program.rate = 0.1
    await program.tick()
    assert program.cluster.replicas == 4


async def test_gpus_that_are_there_again_are_used(program):
    await program.tick(10)
    program.cluster.room = 50
    await program.tick(12)
    assert len(program.cluster.ready_names()) >= 10 / 0.75


async def test_f15_a_number_set_by_hand_stands_for_its_time_and_then_the_demand_decides(program):
    program.cluster.room = 50
    await program.tick(12)
    wanted = program.cluster.replicas
    program.cluster.scale_by_hand(5)
    await program.tick(5)
    assert program.cluster.replicas == 5
    assert program.decision.reason is Reason.EDITED_ELSEWHERE
    assert f"somebody else asked for 5 instead of {wanted}" in str(program.decision)
    await program.tick(3)
    assert program.cluster.replicas >= 10 / 0.75


async def test_f6_what_one_cluster_has_no_room_for_is_ordered_from_the_next(tmp_path, monkeypatch):
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    full, roomy, between = FakeCluster(2, room=4), FakeCluster(0, room=50), Substitution()
    (tmp_path / "next").mkdir()
    async with full, roomy:
        first = Program(full, tmp_path, gives=between, scale_down_hold=60.0)
        second = Program(roomy, tmp_path / "next", takes=between, replicas_min=0, scale_down_hold=60.0)
        second.rate = 0.0
        for each in (first, second):
            each.cluster.run()
            await each.platform.start(FakeReplicaListener())
        for _ in range(14):
            await first.tick()
            await second.tick()
        needed = first.decision.numbers.replicas_wanted
        assert (full.replicas, len(full.ready_names())) == (4 + 1, 4)
        assert between.share == 1 - 4 / needed
        assert needed - 4 <= len(roomy.ready_names()) <= needed - 4 + 3
        first.rate = 0.1
        for _ in range(14):
            await first.tick()
            await second.tick()
        assert (full.replicas, roomy.replicas) == (len(full.ready_names()), 0)
        for each in (first, second):
            await each.platform.stop()
