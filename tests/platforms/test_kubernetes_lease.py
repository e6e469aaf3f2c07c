"""Programs that share a Lease, on an API server that is strict, slow, or away."""

import asyncio
import contextlib
from datetime import datetime

import kubernetes_asyncio.config  # noqa: F401 - now, for it takes longer than these tests wait
import pytest

from autoscaler.platforms.kubernetes.election import ElectionTimes
from autoscaler.platforms.kubernetes.lease import LeaseLeadership, LeaseOptions
from tests.fakes.kubernetes_api import FakeCluster

TIMES = ElectionTimes(duration=2.0, renew_deadline=1.0, renew_interval=0.05)


class Candidates:
    """Programs that would lead; each can be ended in order, or die."""

    def __init__(self, kubeconfig):
        self.kubeconfig = kubeconfig
        self.running = {}

    def start(self, identity):
        options = LeaseOptions("autoscaler-chat", kubeconfig=self.kubeconfig)
        candidate = LeaseLeadership(options, identity=identity, times=TIMES)
        self.running[identity] = candidate, asyncio.create_task(candidate.run())
        return candidate

    async def end(self, identity):
        candidate, task = self.running.pop(identity)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        return candidate

    async def die(self, identity, cluster):
        """End it while nothing that it says arrives, as if its machine were gone."""
        cluster.away, before = "503", cluster.away
        await self.end(identity)
        cluster.away = before


@pytest.fixture
async def cluster(monkeypatch):
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    async with FakeCluster() as opened:
        yield opened


@pytest.fixture
async def candidates(cluster, tmp_path):
    made = Candidates(cluster.kubeconfig(tmp_path))
    yield made
    for identity in list(made.running):
        await made.end(identity)


async def until(condition, seconds=20.0):
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.01)


def the_lease(cluster):
    return cluster.leases["autoscaler-chat"]["spec"]


async def test_the_first_leads_and_the_second_watches(cluster, candidates):
    first = candidates.start("first")
    await until(lambda: first.is_leader)
    second = candidates.start("second")
    await until(lambda: second.leader == "first")
    await asyncio.sleep(0.3)
    assert first.is_leader
    assert not second.is_leader
    assert the_lease(cluster)["holderIdentity"] == "first"
    assert the_lease(cluster)["leaseDurationSeconds"] == 2


async def test_two_that_come_at_once_do_not_both_lead(candidates):
    both = candidates.start("one"), candidates.start("two")
    await until(lambda: any(each.is_leader for each in both))
    for _ in range(30):
        assert sum(each.is_leader for each in both) == 1
        await asyncio.sleep(0.01)


async def test_the_leader_keeps_writing_and_nothing_else(cluster, candidates):
    first = candidates.start("first")
    await until(lambda: first.is_leader)
    taken, written = the_lease(cluster)["acquireTime"], the_lease(cluster)["renewTime"]
    await until(lambda: the_lease(cluster)["renewTime"] > written)
    assert the_lease(cluster)["acquireTime"] == taken
    assert the_lease(cluster)["leaseTransitions"] == 0


async def test_who_ends_in_order_hands_over_at_once(cluster, candidates):
    first = candidates.start("first")
    await until(lambda: first.is_leader)
    second = candidates.start("second")
    await until(lambda: second.leader == "first")
    await candidates.end("first")
    assert not first.is_leader
    await until(lambda: second.is_leader, TIMES.duration / 2)
    assert the_lease(cluster)["leaseTransitions"] == 1


async def test_who_dies_is_replaced_after_the_duration_and_not_before(cluster, candidates):
    first = candidates.start("first")
    await until(lambda: first.is_leader)
    second = candidates.start("second")
    await until(lambda: second.leader == "first")
    died = asyncio.get_running_loop().time()
    await candidates.die("first", cluster)
    await until(lambda: second.is_leader)
    assert TIMES.renew_deadline < asyncio.get_running_loop().time() - died < TIMES.duration + 3.0


@pytest.mark.parametrize("away", ["503", "hang"])
async def test_while_the_api_server_is_away_nobody_leads_and_then_the_same_goes_on(cluster, candidates, away):
    first = candidates.start("first")
    await until(lambda: first.is_leader)
    cluster.away = away
    await until(lambda: not first.is_leader)
    cluster.away = None
    await until(lambda: first.is_leader)
    assert the_lease(cluster)["leaseTransitions"] == 0


async def test_a_lease_that_somebody_deletes_is_made_anew(cluster, candidates):
    first = candidates.start("first")
    await until(lambda: first.is_leader)
    del cluster.leases["autoscaler-chat"]
    await until(lambda: "autoscaler-chat" in cluster.leases)
    assert first.is_leader


async def test_a_lease_that_somebody_else_takes_is_not_fought_for(cluster, candidates):
    first = candidates.start("first")
    await until(lambda: first.is_leader)
    now = datetime.now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    taken = {**the_lease(cluster), "holderIdentity": "a person", "renewTime": now, "leaseDurationSeconds": 60}
    cluster._keep_lease("autoscaler-chat", {**cluster.leases["autoscaler-chat"], "spec": taken})
    await until(lambda: not first.is_leader)
    assert first.leader == "a person"


async def test_a_right_that_lacks_is_told_with_the_remedy(cluster, candidates, capsys):
    cluster.forbidden = {("POST", "leases")}
    first = candidates.start("first")
    await until(lambda: cluster.asked.count("POST leases") >= 3)
    assert not first.is_leader
    told = capsys.readouterr()
    warnings = [line for line in (told.out + told.err).splitlines() if "warning" in line]
    assert len(warnings) == 1
    assert "deploy/kubernetes/rbac.yaml" in warnings[0]


async def test_a_namespace_that_is_not_there_is_told(cluster, tmp_path, capsys):
    options = LeaseOptions("autoscaler-chat", "nowhere", kubeconfig=cluster.kubeconfig(tmp_path))
    candidate = LeaseLeadership(options, identity="first", times=TIMES)
    running = asyncio.create_task(candidate.run())
    await until(lambda: "namespaces/nowhere/leases was answered 404" in capsys.readouterr().out)
    assert not candidate.is_leader
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


def test_two_runs_of_one_program_have_different_names():
    options = LeaseOptions("autoscaler-chat")
    assert LeaseLeadership(options).identity != LeaseLeadership(options).identity


def test_a_name_that_is_none_is_refused():
    with pytest.raises(ValueError, match="name: 'Chat pool' is no name of Kubernetes"):
        LeaseOptions("Chat pool")
