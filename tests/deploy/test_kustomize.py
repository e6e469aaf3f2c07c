"""The kustomize base and its overlays, built by kubectl."""

import shutil
import socket
import subprocess

import pytest
import yaml

from autoscaler.platforms.keda import KedaOptions
from autoscaler.platforms.kubernetes import KubernetesOptions, LeaseOptions
from autoscaler.platforms.static import StaticOptions
from autoscaler.settings import load
from tests.deploy.manifests import (
    DEPLOY,
    check,
    check_pod_is_confined,
    check_probes,
    check_selectors,
    of_kind,
    pod_of,
    settings_in,
)

OVERLAYS = DEPLOY / "kubernetes" / "overlays"
NAME = "inference-autoscaler"
pytestmark = pytest.mark.skipif(
    shutil.which("kubectl") is None, reason="kubectl is not installed, which builds overlays"
)


def built(folder):
    run = subprocess.run(
        ["kubectl", "kustomize", str(folder)], capture_output=True, text=True, timeout=60, check=False
    )
    assert run.returncode == 0, run.stderr
    return list(yaml.safe_load_all(run.stdout))


@pytest.fixture(params=sorted(path.name for path in OVERLAYS.iterdir()))
def overlay(request):
    return built(OVERLAYS / request.param)


@pytest.fixture(scope="module")
def with_sidecars():
    return built(OVERLAYS / "sidecar")


def configured(manifests, workload, folder, command="run"):
    """Return the settings in the ConfigMap that the pods of a workload mount."""
    pod = pod_of(of_kind(manifests, "Deployment")[workload])
    (name,) = [each["configMap"]["name"] for each in pod["volumes"] if "configMap" in each]
    return settings_in(of_kind(manifests, "ConfigMap")[name], folder, command)


def ours(manifests):
    """Yield the pod and our container of every workload."""
    for workload in of_kind(manifests, "Deployment").values():
        pod = pod_of(workload)
        (container,) = [each for each in pod["containers"] if each["name"] == "autoscaler"]
        yield pod, container


def rules(manifests):
    (role,) = of_kind(manifests, "Role").values()
    return role["rules"]


def shipped_rules():
    documents = yaml.safe_load_all((DEPLOY / "kubernetes" / "rbac.yaml").read_text("utf-8"))
    return next(each["rules"] for each in documents if each["kind"] == "Role")


def test_an_overlay_is_what_kubernetes_takes(overlay):
    check(overlay)
    check_selectors(overlay)


def test_our_containers_are_confined_and_probed(overlay):
    for pod, container in ours(overlay):
        check_pod_is_confined(pod, container)
        check_probes(container)


def test_who_may_be_reached_is_said_of_our_pods_only(overlay):
    for policy in of_kind(overlay, "NetworkPolicy").values():
        assert policy["spec"]["podSelector"]["matchLabels"]


@pytest.mark.parametrize("name", ["standalone", "recommend-only", "keda"])
def test_a_pod_is_given_longer_than_it_drains(name, tmp_path):
    manifests = built(OVERLAYS / name)
    proxy = configured(manifests, NAME, tmp_path).proxy
    given = pod_of(of_kind(manifests, "Deployment")[NAME])["terminationGracePeriodSeconds"]
    assert given >= proxy.drain_grace + proxy.drain_max + 10


def test_standalone_scales_with_the_rights_that_ship_and_no_leader(tmp_path):
    manifests = built(OVERLAYS / "standalone")
    platform = configured(manifests, NAME, tmp_path).pools["chat"].platform
    assert isinstance(platform, KubernetesOptions)
    leases = "coordination.k8s.io"
    assert rules(manifests) == [each for each in shipped_rules() if leases not in each["apiGroups"]]
    assert rules(manifests)[0]["resourceNames"] == [platform.name]


def test_recommend_only_may_change_nothing(tmp_path):
    manifests = built(OVERLAYS / "recommend-only")
    assert not configured(manifests, NAME, tmp_path).control.actuate
    assert {verb for rule in rules(manifests) for verb in rule["verbs"]} == {"get", "list", "watch"}
    like = configured(built(OVERLAYS / "standalone"), NAME, tmp_path)
    assert configured(manifests, NAME, tmp_path).pools == like.pools


def test_keda_asks_a_port_that_there_is_and_has_the_same_bounds(tmp_path):
    manifests = built(OVERLAYS / "keda")
    settings = configured(manifests, NAME, tmp_path)
    scaled = of_kind(manifests, "ScaledObject")["chat"]["spec"]
    host, _, port = scaled["triggers"][0]["metadata"]["scalerAddress"].partition(":")
    ports = {each["name"]: each["port"] for each in of_kind(manifests, "Service")[NAME]["spec"]["ports"]}
    assert (host.partition(".")[0], int(port)) == (NAME, ports["keda"])
    pool = settings.pools["chat"]
    assert isinstance(pool.platform, KedaOptions)
    assert scaled["minReplicaCount"] == pool.policy.replicas_min
    assert scaled["maxReplicaCount"] == pool.policy.replicas_max
    assert settings.keda.port == 8083
    assert not of_kind(manifests, "Role")


def test_keda_is_configured_as_in_the_example(tmp_path):
    pool = configured(built(OVERLAYS / "keda"), NAME, tmp_path).pools["chat"]
    example = load(DEPLOY / "examples" / "keda.yaml", {}).pools["chat"]
    assert (pool.policy, pool.queue, pool.slots_per_replica) == (
        example.policy,
        example.queue,
        example.slots_per_replica,
    )


def test_a_sidecar_stands_before_the_server_of_its_pod(with_sidecars, tmp_path):
    settings = configured(with_sidecars, "chat", tmp_path, "sidecar")
    (server,) = [each for each in _pod(with_sidecars)["containers"] if each["name"] == "server"]
    address = dict(zip(server["args"], server["args"][1:], strict=False))
    platform = settings.pools["chat"].platform
    assert isinstance(platform, StaticOptions)
    assert platform.urls == (f"http://{address['--host']}:{address['--port']}",)
    assert address["--max-num-seqs"] == str(settings.pools["chat"].slots_per_replica)
    assert "ports" not in server


def test_the_server_of_a_pod_ends_after_its_sidecar(with_sidecars, tmp_path):
    proxy = configured(with_sidecars, "chat", tmp_path, "sidecar").proxy
    pod = _pod(with_sidecars)
    assert pod["terminationGracePeriodSeconds"] >= proxy.drain_grace + proxy.drain_max + 10
    (server,) = [each for each in pod["containers"] if each["name"] == "server"]
    command = server["lifecycle"]["preStop"]["exec"]["command"]
    with socket.socket() as sidecar:
        sidecar.bind(("127.0.0.1", 0))
        sidecar.listen()
        there = [word.replace("8082", str(sidecar.getsockname()[1])) for word in command]
        waiting = subprocess.Popen(there)
        with pytest.raises(subprocess.TimeoutExpired):
            waiting.wait(timeout=0.7)
    assert waiting.wait(timeout=30) == 0


def test_two_controllers_read_the_sidecars_and_share_a_lease(with_sidecars, tmp_path):
    settings = configured(with_sidecars, NAME, tmp_path, "controller")
    deployment = of_kind(with_sidecars, "Deployment")[NAME]
    assert deployment["spec"]["replicas"] == 2
    pool = settings.pools["chat"]
    service = of_kind(with_sidecars, "Service")["chat"]
    ports = [port["name"] for port in service["spec"]["ports"]]
    assert isinstance(pool.platform, KubernetesOptions)
    assert (pool.platform.name, pool.platform.service) == ("chat", "chat")
    assert {pool.platform.port, pool.demand.place.port} <= set(ports)
    assert pool.demand.place.service == "chat"
    assert isinstance(settings.leadership, LeaseOptions)
    named = [rule.get("resourceNames") for rule in rules(with_sidecars)]
    assert [settings.leadership.name] in named
    assert rules(with_sidecars) == shipped_rules()


def test_both_sides_of_the_sidecar_overlay_mean_the_same_pool(with_sidecars, tmp_path):
    sidecar = configured(with_sidecars, "chat", tmp_path, "sidecar").pools
    controller = configured(with_sidecars, NAME, tmp_path, "controller").pools
    assert sidecar.keys() == controller.keys()
    assert sidecar["chat"].slots_per_replica == controller["chat"].slots_per_replica
    assert sidecar["chat"].objective == controller["chat"].objective


def test_applying_the_overlay_again_does_not_scale(with_sidecars):
    assert "replicas" not in of_kind(with_sidecars, "Deployment")["chat"]["spec"]


def test_the_pod_monitor_names_the_port_of_our_pods(overlay):
    (monitor,) = of_kind(
        yaml.safe_load_all(
            (DEPLOY / "kubernetes" / "components" / "podmonitor" / "podmonitor.yaml").read_text("utf-8")
        ),
        "PodMonitor",
    ).values()
    (port,) = [each["port"] for each in monitor["spec"]["podMetricsEndpoints"]]
    names = monitor["spec"]["selector"]["matchExpressions"][0]["values"]
    for workload in of_kind(overlay, "Deployment").values():
        assert workload["spec"]["template"]["metadata"]["labels"]["app.kubernetes.io/name"] in names
        assert any(
            port == each["name"]
            for container in pod_of(workload)["containers"]
            for each in container.get("ports", [])
        )


def _pod(manifests):
    return pod_of(of_kind(manifests, "Deployment")["chat"])
