"""The platform `kubernetes` against a real API server, controllers and scheduler: `make test-kubernetes`.

Needs the binaries of Kubernetes (see `tests/kubernetes_build.sh`) in the folder that KUBERNETES_BIN names,
etcd and openssl; skipped without. Who asks has the rights of `deploy/kubernetes/rbac.yaml` and no others.
"""

import asyncio
import contextlib
import json
import os
import shutil
import signal
import urllib.error
from pathlib import Path
from random import Random

import pytest
import yaml

from autoscaler.cli.findings import Level
from autoscaler.cli.probe_kubernetes import _probe
from autoscaler.clock import SystemClock
from autoscaler.errors import PlatformUnavailable
from autoscaler.platforms.kubernetes import (
    Kubernetes,
    KubernetesOptions,
    LeaseLeadership,
    LeaseOptions,
    api,
    platform,
)
from autoscaler.platforms.kubernetes.access import load_access
from autoscaler.platforms.kubernetes.api import Api
from autoscaler.platforms.kubernetes.election import ElectionTimes
from autoscaler.remote_fleet import RemoteFleetOptions
from tests.fakes.kube_local import KubeLocal
from tests.fakes.replica_listener import FakeReplicaListener

BIN = os.environ.get("KUBERNETES_BIN", "")
RBAC = Path(__file__).parents[2] / "deploy" / "kubernetes" / "rbac.yaml"
MERGE = "application/merge-patch+json"
APPS = "/apis/apps/v1/namespaces/default/deployments"

pytestmark = pytest.mark.skipif(
    not (Path(BIN) / "kube-apiserver").is_file() or shutil.which("etcd") is None,
    reason="needs KUBERNETES_BIN with kube-apiserver, and etcd: make test-kubernetes says how",
)


class AnyServer:
    """Every pod serves."""

    async def ready(self, url: str) -> bool:
        return url.startswith("http://10.1.")


class LaterClock(SystemClock):
    """The machine's clock, moved forward by the test."""

    later = 0.0

    def now(self) -> float:
        return super().now() + self.later


@pytest.fixture(scope="module")
def cluster():
    """One node with three GPUs, a Deployment whose pods want one each, its Service, and our rights."""
    with KubeLocal(BIN, controllers=True, nodes=1, gpus=3) as running:
        container = {
            "name": "server",
            "image": "server",
            "ports": [{"containerPort": 9001}],
            "resources": {"limits": {"nvidia.com/gpu": 1}},
        }
        labels = {"app": "chat"}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
        spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
        running.call("POST", APPS, {"metadata": {"name": "chat"}, "spec": spec})
        service = {"selector": labels, "ports": [{"port": 80, "targetPort": 9001}]}
        services = "/api/v1/namespaces/default/services"
        running.call("POST", services, {"metadata": {"name": "chat"}, "spec": service})
        for document in yaml.safe_load_all(RBAC.read_text()):
            if document["kind"] == "RoleBinding":
                document["subjects"] = [{"kind": "User", "name": "user"}]
            if document["kind"] != "ServiceAccount":
                plural = document["kind"].lower() + "s"
                root = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/"
                running.call("POST", root + plural, document)
        config = json.loads(running.kubeconfig.read_text())
        config["users"][0]["user"]["token"] = running.user_token
        (running.dir / "us").write_text(json.dumps(config))
        yield running


def options(cluster, folder, **given):
    fleet = RemoteFleetOptions(state_dir=folder, probe_interval=0.1)
    return KubernetesOptions("chat", "chat", fleet, kubeconfig=cluster.dir / "us", **given)


@pytest.fixture
async def running(cluster, tmp_path):
    clock, listener = LaterClock(), FakeReplicaListener()
    made = Kubernetes(options(cluster, tmp_path), AnyServer(), clock, Random(1))
    made.test_clock, made.test_listener = clock, listener
    await made.start(listener)
    yield made
    await made.scale_to(1)
    await until_counts(made, 1, 0, 0)
    await made.stop()


async def until_counts(made, *wanted):
    seen = None
    try:
        async with asyncio.timeout(15):
            while seen != wanted:
                await asyncio.sleep(0.1)
                with contextlib.suppress(PlatformUnavailable):
                    fleet = await made.fleet()
                    seen = fleet.ready, fleet.starting, fleet.draining
    except TimeoutError:
        pytest.fail(f"waited for {wanted}, it stayed {seen}: {made.last_error}")


async def test_up_and_down_with_the_least_rights_and_an_event_for_each(cluster, running):
    await until_counts(running, 1, 0, 0)
    await running.scale_to(3)
    await until_counts(running, 3, 0, 0)
    running.test_listener.busy = dict.fromkeys(running.test_listener.ready, 1)
    await running.scale_to(1)
    await until_counts(running, 1, 0, 2)
    assert cluster.call("GET", f"{APPS}/chat/scale")["spec"]["replicas"] == 3  # they hold requests
    running.test_listener.busy = {}
    await running.scale_to(1)
    await until_counts(running, 1, 0, 0)
    events = cluster.call("GET", "/apis/events.k8s.io/v1/namespaces/default/events")["items"]
    ours = [each["note"] for each in events if each.get("reportingController") == "inference-autoscaler"]
    assert "Scaled from 1 to 3 replicas" in ours
    assert "Scaled from 3 to 1 replicas" in ours


async def test_pods_without_a_gpu_are_recognised_and_cut_back_to_one_probe(cluster, running):
    await until_counts(running, 1, 0, 0)
    await running.scale_to(8)
    await until_counts(running, 3, 5, 0)
    running.test_clock.later = 31.0
    await until_counts(running, 3, 0, 0)
    assert "5 pods cannot be scheduled" in running.last_error
    assert (await running.fleet()).overdue == 5
    assert "nvidia.com/gpu" in running.last_error
    await running.scale_to(8)
    assert cluster.call("GET", f"{APPS}/chat/scale")["spec"]["replicas"] == 4


async def test_a_hand_on_the_deployment_is_seen(cluster, running):
    await until_counts(running, 1, 0, 0)
    change = {"spec": {"replicas": 2}}
    cluster.call("PATCH", f"{APPS}/chat/scale", change, MERGE)
    await until_counts(running, 2, 0, 0)


async def test_a_number_that_somebody_else_has_set_is_told(cluster, running):
    await until_counts(running, 1, 0, 0)
    await running.scale_to(2)
    change = {"spec": {"replicas": 3}}
    cluster.call("PATCH", f"{APPS}/chat/scale", change, MERGE)
    assert (await running.fleet()).edited == 3


async def test_a_rolling_update_takes_nobody_away_and_changes_no_number(cluster, running):
    await running.scale_to(2)
    await until_counts(running, 2, 0, 0)
    template = {"metadata": {"annotations": {"version": "2"}}}
    cluster.call("PATCH", f"{APPS}/chat", {"spec": {"template": template}}, MERGE)
    least = 2

    def is_done():
        status = cluster.call("GET", f"{APPS}/chat")["status"]
        return status.get("updatedReplicas") == status["replicas"] == status["readyReplicas"] == 2

    async with asyncio.timeout(15):
        while not is_done():
            fleet = await running.fleet()
            least = min(least, fleet.ready)
            assert fleet.edited is None
            await running.scale_to(2)
    assert least == 2
    await until_counts(running, 2, 0, 0)
    assert cluster.call("GET", f"{APPS}/chat/scale")["spec"]["replicas"] == 2


async def test_pods_that_a_quota_forbids_are_told(cluster, running):
    await until_counts(running, 1, 0, 0)
    quotas = "/api/v1/namespaces/default/resourcequotas"
    hard = {"hard": {"pods": "1"}}
    cluster.call("POST", quotas, {"metadata": {"name": "one"}, "spec": hard})
    cluster.call("PATCH", f"{quotas}/one/status", {"status": {**hard, "used": {"pods": "1"}}}, MERGE)
    await asyncio.sleep(0.5)  # until admission knows of it
    try:
        await running.scale_to(3)
        await until_counts(running, 1, 2, 0)
        running.test_clock.later = 61.0
        await until_counts(running, 1, 0, 0)
        assert "2 pods were never made, for a quota perhaps" in running.last_error
    finally:
        cluster.call("DELETE", f"{quotas}/one")


async def test_while_the_server_stands_still_the_fleet_is_held_and_then_caught_up_with(
    cluster, running, monkeypatch
):
    await until_counts(running, 1, 0, 0)
    monkeypatch.setattr(api, "_TIMEOUT", 0.5)
    await running.scale_to(1)
    server = dict(cluster.procs)["kube-apiserver"]
    server.send_signal(signal.SIGSTOP)
    try:
        for ask in (running.fleet, lambda: running.scale_to(2)):
            with pytest.raises(PlatformUnavailable, match=r"no answer .* within 0.5 s"):
                await ask()
    finally:
        server.send_signal(signal.SIGCONT)
    assert len(running.test_listener.ready) == 1
    monkeypatch.undo()
    async with asyncio.timeout(30):
        while True:
            with contextlib.suppress(PlatformUnavailable):
                await running.scale_to(2)
                break
            await asyncio.sleep(0.1)
    await until_counts(running, 2, 0, 0)


async def test_a_kind_of_somebodys_own_is_scaled_once_it_says_which_pods_are_its_own(
    cluster, tmp_path, monkeypatch
):
    monkeypatch.setattr(platform, "_FIRST_LOOK", 0.5)
    monkeypatch.setattr(platform, "_PAUSE_MAX", 1.0)
    kept = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    scale = {"specReplicasPath": ".spec.groups", "statusReplicasPath": ".status.groups"}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": kept | {"properties": {"spec": kept, "status": kept}}},
        "subresources": {"status": {}, "scale": {**scale, "labelSelectorPath": ".status.selector"}},
    }
    names = {"plural": "crews", "singular": "crew", "kind": "Crew"}
    spec = {"group": "example.org", "scope": "Namespaced", "names": names, "versions": [version]}
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    cluster.call("POST", definitions, {"metadata": {"name": "crews.example.org"}, "spec": spec})
    crews = "/apis/example.org/v1/namespaces/default/crews"
    made = {
        "apiVersion": "example.org/v1",
        "kind": "Crew",
        "metadata": {"name": "chat"},
        "spec": {"groups": 1},
    }
    async with asyncio.timeout(20):
        while True:
            with contextlib.suppress(urllib.error.HTTPError):
                cluster.call("POST", crews, made)
                break
            await asyncio.sleep(0.1)
    fleet = RemoteFleetOptions(state_dir=tmp_path, probe_interval=0.1)
    chosen = KubernetesOptions(
        "chat", "chat", fleet, "Crew", "example.org/v1", "default", kubeconfig=cluster.kubeconfig
    )
    crew = Kubernetes(chosen, AnyServer(), rng=Random(1))
    await crew.start(FakeReplicaListener())
    assert "does not say which pods are its own; declare labelSelectorPath for Crew" in crew.last_error
    cluster.call("PATCH", f"{crews}/chat/status", {"status": {"groups": 1, "selector": "app=chat"}}, MERGE)
    await until_counts(crew, 1, 0, 0)
    await crew.scale_to(2)
    assert cluster.call("GET", f"{crews}/chat")["spec"] == {"groups": 2}
    await crew.stop()


async def test_one_of_two_leads_with_the_least_rights_and_the_other_takes_over(cluster):
    lease = LeaseOptions("inference-autoscaler", kubeconfig=cluster.dir / "us")
    times = ElectionTimes(duration=3.0, renew_deadline=2.0, renew_interval=0.2)
    first, second = (LeaseLeadership(lease, identity=name, times=times) for name in ("first", "second"))
    tasks = [asyncio.create_task(first.run())]
    await until(lambda: first.is_leader)
    tasks.append(asyncio.create_task(second.run()))
    await until(lambda: second.leader == "first")
    assert not second.is_leader
    tasks[0].cancel()
    await until(lambda: second.is_leader)
    leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
    spec = cluster.call("GET", f"{leases}/inference-autoscaler")["spec"]
    assert (spec["holderIdentity"], spec["leaseTransitions"]) == ("second", 1)
    tasks[1].cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert not cluster.call("GET", f"{leases}/inference-autoscaler")["spec"].get("holderIdentity")


async def until(condition):
    async with asyncio.timeout(15):
        while not condition():
            await asyncio.sleep(0.02)


async def test_check_finds_that_everything_is_there_and_allowed(cluster, tmp_path):
    found = {}
    for name, token in (("us", cluster.user_token), ("nobody", "no-such-token")):
        config = json.loads((cluster.dir / "us").read_text())
        config["users"][0]["user"]["token"] = token
        (cluster.dir / name).write_text(json.dumps(config))
        chosen = KubernetesOptions(
            "chat", "chat", RemoteFleetOptions(state_dir=tmp_path), kubeconfig=cluster.dir / name
        )
        ours = Api(lambda chosen=chosen: load_access(chosen.kubeconfig, chosen.context))
        found[name] = await _probe(ours, "platform", chosen)
        await ours.close()
    assert [finding.level for finding in found["us"]] == [Level.OK] * 3
    assert found["nobody"][0].level is Level.PROBLEM
    assert "renew the token" in found["nobody"][0].text


async def test_the_rights_are_the_least(cluster):
    cluster.token, admin = cluster.user_token, cluster.token
    try:
        with pytest.raises(urllib.error.HTTPError, match="403"):
            cluster.call("GET", APPS)
        with pytest.raises(urllib.error.HTTPError, match="403"):
            cluster.call("DELETE", f"{APPS}/chat")
    finally:
        cluster.token = admin
