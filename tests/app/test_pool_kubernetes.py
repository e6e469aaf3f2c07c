"""A pool of pods, made from settings, on an API server that is strict; and what `check` says of it."""

import kubernetes_asyncio.config  # noqa: F401 - now, for it takes longer than these tests wait
import kubernetes_validate
import pytest
import yaml
from aiohttp import web
from aiohttp.test_utils import TestServer

from autoscaler.cli.findings import Level
from autoscaler.cli.probe_kubernetes import probe_kubernetes
from tests.fakes.kubernetes_api import FakeCluster
from tests.fakes.pools import a_pool
from tests.fakes.program import ROOT


@pytest.fixture
async def cluster():
    """Two pods that are ready, and a server at the port that they say they have."""

    async def ready(request):
        return web.Response()

    application = web.Application()
    application.router.add_get("/healthz", ready)
    async with TestServer(application, host="127.0.0.1") as server:
        running = FakeCluster(2, port=server.port)
        running.run()
        async with running:
            yield running


def platform(cluster, folder):
    kubeconfig = str(cluster.kubeconfig(folder))
    return {"kind": "kubernetes", "name": "chat", "service": "chat", "kubeconfig": kubeconfig}


async def test_what_runs_is_taken_over_and_then_scaled(cluster, tmp_path):
    async with a_pool(tmp_path, platform(cluster, tmp_path), scaling={"replicas_max": 9}) as pool:
        await pool.start()
        assert (await pool.platform.fleet()).ready == 2
        assert cluster.replicas == 2  # adoption lowers nothing
        assert pool.drive.snapshot().slots == 2
        await pool.platform.scale_to(5)
        assert cluster.replicas == 5


async def test_in_recommend_mode_nothing_is_changed(cluster, tmp_path):
    given = platform(cluster, tmp_path)
    async with a_pool(tmp_path, given, mode="recommend", scaling={"replicas_min": 4}) as pool:
        await pool.start()
        await pool.control.tick()
        assert pool.control.state.decision.desired == 4
        assert pool.control.state.fleet.ready == 2
    assert cluster.replicas == 2
    assert not [asked for asked in cluster.asked if not asked.startswith("GET")]


async def checked(folder, given):
    async with a_pool(folder, given) as pool:
        findings = await probe_kubernetes(pool.settings, pool.settings.platform)
        return {finding.subject.rpartition(".")[2]: finding for finding in findings}


async def test_check_looks_at_the_target_the_service_and_the_rights(cluster, tmp_path):
    found = await checked(tmp_path, platform(cluster, tmp_path))
    assert {finding.level for finding in found.values()} == {Level.OK}
    assert found["name"].text == "Deployment default/chat is there, with 2 replicas"
    assert found["service"].text == "Service chat has 2 ready endpoint(s)"
    assert not [asked for asked in cluster.asked if asked.startswith("PATCH")]


@pytest.mark.parametrize(
    ("denied", "level"),
    [(("patch", "deployments/scale"), Level.PROBLEM), (("create", "events"), Level.WARNING)],
)
async def test_check_names_the_right_that_lacks(cluster, tmp_path, denied, level):
    cluster.denied = {denied}
    found = await checked(tmp_path, platform(cluster, tmp_path))
    assert found["rights"].level is level
    assert f"not allowed: {' '.join(denied)}; bind the Role" in found["rights"].text


async def test_check_names_a_port_and_a_kind_that_are_not_there(cluster, tmp_path):
    found = await checked(tmp_path, {**platform(cluster, tmp_path), "port": "metrics"})
    assert found["service"].level is Level.WARNING
    assert found["service"].text == (
        f"Service chat: it has no port metrics; set port to one of these: http: {cluster.port}"
    )
    found = await checked(tmp_path, {**platform(cluster, tmp_path), "resource_kind": "DaemonSet"})
    assert found["name"].level is Level.PROBLEM


async def test_check_asks_which_of_several_ports_is_meant(cluster, tmp_path):
    metrics = {"name": "metrics", "port": 8002, "protocol": "TCP"}
    cluster.slices["slice-0"]["ports"].insert(0, metrics)
    found = await checked(tmp_path, platform(cluster, tmp_path))
    assert found["service"].level is Level.WARNING
    assert "the first is taken; set port to one of metrics, http" in found["service"].text
    found = await checked(tmp_path, {**platform(cluster, tmp_path), "port": "http"})
    assert found["service"].level is Level.OK


async def test_check_takes_no_pod_for_ready_that_terminates(cluster, tmp_path):
    cluster.scale_by_hand(1)
    found = await checked(tmp_path, platform(cluster, tmp_path))
    assert found["service"].text == "Service chat has 1 ready endpoint(s)"


@pytest.mark.parametrize("file", ["kubernetes/rbac.yaml"])
def test_manifests_are_valid(file):
    for document in yaml.safe_load_all((ROOT / "deploy" / file).read_text()):
        kubernetes_validate.validate(document, "1.37", strict=True)
