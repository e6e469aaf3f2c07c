"""The kustomize base and its overlays, built by kubectl."""

import os
import re
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
    has_rights,
    of_kind,
    pod_of,
    settings_in,
    workloads,
)

OVERLAYS = DEPLOY / "kubernetes" / "overlays"
NAME, PROXIES = "inference-autoscaler", "inference-autoscaler-proxy"
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


@pytest.fixture(scope="module")
def with_proxies():
    return built(OVERLAYS / "proxies")


def configured(manifests, workload, folder, command="run"):
    """Return the settings in the ConfigMap that the pods of a workload mount."""
    pod = pod_of(workloads(manifests)[workload])
    (name,) = [each["configMap"]["name"] for each in pod["volumes"] if "configMap" in each]
    return settings_in(of_kind(manifests, "ConfigMap")[name], folder, command)


def ours(manifests):
    """Yield the pod and our container of every workload."""
    for workload in workloads(manifests).values():
        pod = pod_of(workload)
        yield pod, ours_of(workload)


def ours_of(workload):
    (container,) = [each for each in pod_of(workload)["containers"] if each["name"] == "autoscaler"]
    return container


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


def test_an_overlay_on_top_gives_its_own_configuration_the_rights_to_what_it_names(tmp_path):
    text = (DEPLOY.parent / "docs" / "deploy.md").read_text("utf-8")
    (example,) = re.findall(r"```yaml\n(apiVersion: kustomize.*?)```", text, re.DOTALL)
    here = os.path.relpath(DEPLOY.parent, tmp_path.resolve())
    (tmp_path / "kustomization.yaml").write_text(example.replace("../inference-autoscaler", here))
    (tmp_path / "autoscaler.yaml").write_text("what: is mine\n")
    manifests = built(tmp_path)
    assert rules(manifests)[0]["resourceNames"] == ["llama", "embed"]
    assert rules(manifests)[0]["resources"] == ["deployments/scale"]
    (configuration,) = of_kind(manifests, "ConfigMap").values()
    assert configuration["data"] == {"autoscaler.yaml": "what: is mine\n"}


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
    assert workloads(with_sidecars)[NAME]["spec"]["replicas"] == 2
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


def test_each_controller_keeps_a_history_of_its_own(with_sidecars):
    workload = workloads(with_sidecars)[NAME]
    assert workload["kind"] == "StatefulSet"
    (state,) = workload["spec"]["volumeClaimTemplates"]
    mounted = {each["name"]: each["mountPath"] for each in ours_of(workload)["volumeMounts"]}
    assert mounted[state["metadata"]["name"]] == "/var/lib/autoscaler"
    assert of_kind(with_sidecars, "Service")[workload["spec"]["serviceName"]]


def test_controllers_tell_proxies_of_the_replicas_that_they_scale(with_proxies, tmp_path):
    settings = configured(with_proxies, NAME, tmp_path, "controller")
    pool = settings.pools["chat"]
    assert isinstance(pool.platform, KubernetesOptions)
    assert pool.demand.is_shared
    doors = of_kind(with_proxies, "Service")[pool.demand.place.service]["spec"]
    assert [port["name"] for port in doors["ports"]] == [pool.demand.place.port]
    assert doors["publishNotReadyAddresses"]
    assert rules(with_proxies) == shipped_rules()
    told = configured(with_proxies, PROXIES, tmp_path, "sidecar")
    assert told.pools.keys() == settings.pools.keys()
    assert told.pools["chat"].objective == pool.objective


def test_proxies_have_no_rights_and_bear_the_loss_of_a_node(with_proxies, tmp_path):
    proxy = configured(with_proxies, PROXIES, tmp_path, "sidecar").proxy
    workload = workloads(with_proxies)[PROXIES]
    pod = pod_of(workload)
    assert workload["spec"]["replicas"] >= 2
    assert not has_rights(pod)
    assert pod["terminationGracePeriodSeconds"] >= proxy.drain_grace + proxy.drain_max + 10
    assert [each["topologyKey"] for each in pod["topologySpreadConstraints"]] == ["kubernetes.io/hostname"]
    budget = of_kind(with_proxies, "PodDisruptionBudget")[PROXIES]["spec"]
    assert (budget["selector"], budget["maxUnavailable"]) == (workload["spec"]["selector"], 1)


@pytest.mark.parametrize(("name", "door"), [("sidecar", "chat"), ("proxies", "inference-autoscaler-proxy")])
def test_controllers_may_reach_the_admin_ports_that_they_read(name, door):
    manifests = built(OVERLAYS / name)
    policy = of_kind(manifests, "NetworkPolicy")[door]["spec"]
    (admin,) = [rule for rule in policy["ingress"] if rule["ports"] == [{"port": "admin"}]]
    (pods,) = [each["podSelector"]["matchLabels"] for each in admin["from"] if "podSelector" in each]
    assert pods.items() <= workloads(manifests)[NAME]["spec"]["template"]["metadata"]["labels"].items()


def test_applying_the_overlay_again_does_not_scale(with_sidecars):
    assert "replicas" not in of_kind(with_sidecars, "Deployment")["chat"]["spec"]


def test_the_pod_monitor_names_the_port_of_our_pods(overlay):
    (monitor,) = of_kind(
        yaml.safe_load_all(
            (DEPLOY / "kubernetes" / "components" / "podmonitor" / "podmonitor.yaml").read_text("utf-8")
        ),
        "PodMonitor",
    ).values()
    assert "jobLabel" not in monitor["spec"]  # the job is then NAMESPACE/inference-autoscaler
    (port,) = [each["port"] for each in monitor["spec"]["podMetricsEndpoints"]]
    names = monitor["spec"]["selector"]["matchExpressions"][0]["values"]
    for workload in workloads(overlay).values():
        assert workload["spec"]["template"]["metadata"]["labels"]["app.kubernetes.io/name"] in names
        assert any(
            port == each["name"]
            for container in pod_of(workload)["containers"]
            for each in container.get("ports", [])
        )


def _pod(manifests):
    return pod_of(of_kind(manifests, "Deployment")["chat"])
