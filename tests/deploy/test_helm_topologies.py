"""The Helm chart where several programs work together: sidecars or proxies, and controllers reading both."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from autoscaler.platforms.kubernetes import KubernetesOptions, LeaseOptions
from autoscaler.platforms.static import StaticOptions
from autoscaler.telemetry.demand.options import KubernetesDoors
from tests.deploy.helm_process import ABSENT, Helm, Refused, installed
from tests.deploy.manifests import (
    DEPLOY,
    Manifest,
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

pytestmark = [
    pytest.mark.skipif(not installed(), reason=ABSENT),
    pytest.mark.skipif(
        shutil.which("kubectl") is None, reason="kubectl is not installed, which applies patches"
    ),
]

CHART = DEPLOY / "helm" / "inference-autoscaler"
NAME = "inference-autoscaler"
MODEL_SERVER = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "chat"},
    "spec": {
        "selector": {"matchLabels": {"app": "chat"}},
        "template": {
            "metadata": {"labels": {"app": "chat"}},
            "spec": {
                "containers": [
                    {
                        "name": "server",
                        "image": "vllm/vllm-openai:v0.11.0",
                        "volumeMounts": [{"name": "models", "mountPath": "/models"}],
                    },
                    {"name": "logs", "image": "logs:1"},
                ],
                "volumes": [{"name": "models", "emptyDir": {}}],
            },
        },
    },
}
"""A Deployment of somebody who never heard of sidecars."""


@pytest.fixture(scope="module")
def helm():
    started = Helm(CHART)
    yield started
    started.close()


@pytest.fixture(scope="module")
def rendered(helm):
    return helm.manifests


def example(name: str, **changes) -> dict:
    return {**yaml.safe_load((CHART / "examples" / f"{name}.yaml").read_text("utf-8")), **changes}


def patched(manifests: list[Manifest], folder: Path, pool: str = "chat") -> Manifest:
    """Return the model server with the chart's patch, as the API server would merge it."""
    (folder / "patch.yaml").write_text(
        of_kind(manifests, "ConfigMap")[f"{NAME}-sidecar-patches"]["data"][f"{pool}.yaml"]
    )
    (folder / "server.yaml").write_text(yaml.safe_dump(MODEL_SERVER))
    asked = {
        "resources": ["server.yaml"],
        "patches": [{"path": "patch.yaml", "target": {"kind": "Deployment"}}],
    }
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(asked))
    run = subprocess.run(
        ["kubectl", "kustomize", str(folder)], capture_output=True, text=True, timeout=60, check=False
    )
    assert run.returncode == 0, run.stderr
    return yaml.safe_load(run.stdout)


def containers(workload: Manifest) -> dict[str, Manifest]:
    return {each["name"]: each for each in pod_of(workload)["containers"]}


@pytest.mark.parametrize("name", ["sidecar", "proxies"])
def test_an_example_renders_to_manifests_that_kubernetes_takes(rendered, name, tmp_path):
    manifests = rendered(example(name))
    if name == "sidecar":
        manifests.append(patched(manifests, tmp_path))
    check(manifests)
    check_selectors(manifests)
    for workload in workloads(manifests).values():
        container = containers(workload)["autoscaler"]
        check_pod_is_confined(pod_of(workload), container)
        check_probes(container)


@pytest.mark.parametrize("name", ["sidecar", "proxies"])
def test_controllers_share_a_lease_that_they_may_write_and_keep_a_history_each(rendered, name, tmp_path):
    manifests = rendered(example(name))
    settings = settings_in(of_kind(manifests, "ConfigMap")[NAME], tmp_path, "controller")
    workload = workloads(manifests)[NAME]
    assert (workload["kind"], workload["spec"]["replicas"]) == ("StatefulSet", 2)
    assert [each["metadata"]["name"] for each in workload["spec"]["volumeClaimTemplates"]] == ["state"]
    assert workload["spec"]["serviceName"] in of_kind(manifests, "Service")
    assert containers(workload)["autoscaler"]["args"][0] == "controller"
    assert isinstance(settings.leadership, LeaseOptions)
    rules = of_kind(manifests, "Role")[f"{NAME}-controllers"]["rules"]
    rights = {(rule["resources"][0], *rule.get("resourceNames", ())): rule["verbs"] for rule in rules}
    assert rights == {
        ("leases", settings.leadership.name): ["get", "patch"],
        ("leases",): ["create"],
        ("endpointslices",): ["list", "watch"],
    }
    shipped = yaml.safe_load_all((DEPLOY / "kubernetes" / "rbac.yaml").read_text("utf-8"))
    of_the_file = next(each["rules"] for each in shipped if each["kind"] == "Role")
    assert all(rule in of_the_file for rule in rules)
    assert of_kind(manifests, "PodDisruptionBudget")[NAME]["spec"]["maxUnavailable"] == 1


def test_without_persistence_controllers_are_a_deployment_and_forget(rendered):
    manifests = rendered(example("sidecar", persistence={"enabled": False}))
    workload = workloads(manifests)[NAME]
    assert workload["kind"] == "Deployment"
    (state,) = [each for each in pod_of(workload)["volumes"] if each["name"] == "state"]
    assert "emptyDir" in state


@pytest.mark.parametrize("name", ["sidecar", "proxies"])
def test_controllers_find_those_that_they_read(rendered, name, tmp_path):
    manifests = rendered(example(name))
    pool = settings_in(of_kind(manifests, "ConfigMap")[NAME], tmp_path, "controller").pools["chat"]
    assert isinstance(pool.demand.place, KubernetesDoors)
    service = of_kind(manifests, "Service")[pool.demand.place.service]
    assert [port["name"] for port in service["spec"]["ports"]] == [pool.demand.place.port]
    assert pool.demand.is_shared == (name == "proxies")
    # A proxy without a replica is not ready, and what waits there must be heard all the same.
    assert service["spec"].get("publishNotReadyAddresses", False) == (name == "proxies")


@pytest.mark.parametrize("name", ["sidecar", "proxies"])
def test_controllers_may_reach_those_that_they_read_and_others_may_not(rendered, name):
    manifests = rendered(example(name))
    labels = workloads(manifests)[NAME]["spec"]["template"]["metadata"]["labels"]
    policies = of_kind(manifests, "NetworkPolicy")
    policy = policies[f"{NAME}-{'chat' if name == 'sidecar' else 'proxy'}"]["spec"]
    (admin,) = [rule for rule in policy["ingress"] if rule["ports"] == [{"port": "admin"}]]
    pods = [each["podSelector"]["matchLabels"] for each in admin["from"] if "podSelector" in each]
    assert len(pods) == 1
    assert pods[0].items() <= labels.items()
    assert all(each["spec"]["policyTypes"] == ["Ingress"] for each in policies.values())


def test_a_patched_pod_keeps_what_it_had_and_has_a_sidecar_before_its_server(rendered, tmp_path):
    manifests = rendered(example("sidecar"))
    workload = patched(manifests, tmp_path)
    assert set(containers(workload)) == {"server", "logs", "autoscaler"}
    assert containers(workload)["server"]["volumeMounts"] == [{"name": "models", "mountPath": "/models"}]
    volumes = {each["name"]: each for each in pod_of(workload)["volumes"]}
    mounted = {each["name"] for each in containers(workload)["autoscaler"]["volumeMounts"]}
    assert mounted | {"models"} == set(volumes)
    config = of_kind(manifests, "ConfigMap")[volumes["autoscaler-config"]["configMap"]["name"]]
    settings = settings_in(config, tmp_path, "sidecar")
    assert isinstance(settings.pools["chat"].platform, StaticOptions)
    assert settings.pools["chat"].platform.urls == ("http://127.0.0.1:8000",)
    given = pod_of(workload)["terminationGracePeriodSeconds"]
    assert given >= settings.proxy.drain_grace + settings.proxy.drain_max + 10


def test_a_server_without_python_waits_for_its_sidecar_as_it_is_told(rendered, tmp_path):
    server = {"selector": {"app": "chat"}, "container": "server", "preStop": {"sleep": {"seconds": 135}}}
    manifests = rendered(example("sidecar", sidecars={"servers": {"chat": server}}))
    workload = patched(manifests, tmp_path)
    check([workload])
    assert containers(workload)["server"]["lifecycle"] == {"preStop": {"sleep": {"seconds": 135}}}
    default = containers(patched(rendered(example("sidecar")), tmp_path))["server"]["lifecycle"]["preStop"]
    overlay = yaml.safe_load_all(
        (DEPLOY / "kubernetes/overlays/sidecar/model-server.yaml").read_text("utf-8")
    )
    (like,) = [each for each in pod_of(next(overlay))["containers"] if each["name"] == "server"]
    assert default == like["lifecycle"]["preStop"]


def test_a_sidecar_and_its_controllers_mean_the_same_pool(rendered, tmp_path):
    values = example("sidecar")
    values["pools"]["chat"] |= {"objective": {"wait": "2s"}, "slots_per_replica": 7}
    maps = of_kind(rendered(values), "ConfigMap")
    sidecar = settings_in(maps[f"{NAME}-chat-sidecar"], tmp_path, "sidecar").pools["chat"]
    controller = settings_in(maps[NAME], tmp_path, "controller").pools["chat"]
    assert (sidecar.slots_per_replica, sidecar.objective) == (7, controller.objective)
    assert controller.slots_per_replica == 7
    assert isinstance(controller.platform, KubernetesOptions)
    assert controller.platform.service in of_kind(rendered(values), "Service")
    assert (controller.platform.name, controller.platform.port) == ("chat", "admin")
    assert (controller.server.kind, controller.server.ready_path) == ("plain_http", "/readyz")


def test_pools_have_a_service_and_a_patch_each(rendered):
    values = example("sidecar")
    values["pools"]["embed_1"] = {
        "server": {"kind": "triton", "model": "embed"},
        "platform": {"kind": "kubernetes", "name": "embed", "resource_kind": "StatefulSet"},
    }
    values["sidecars"]["servers"]["embed_1"] = {
        "selector": {"app": "embed"},
        "container": "triton",
        "url": "http://127.0.0.1:8000",
    }
    manifests = rendered(values)
    check(manifests)
    services = of_kind(manifests, "Service")
    ports = {name: [port["name"] for port in each["spec"]["ports"]] for name, each in services.items()}
    assert ports[f"{NAME}-chat"] == ["http"]
    assert ports[f"{NAME}-embed-1"] == ["http", "grpc"]
    assert services[f"{NAME}-embed-1"]["spec"]["selector"] == {"app": "embed"}
    assert set(of_kind(manifests, "ConfigMap")[f"{NAME}-sidecar-patches"]["data"]) == {
        "chat.yaml",
        "embed_1.yaml",
    }
    role = of_kind(manifests, "Role")[f"{NAME}-embed-1"]
    assert role["rules"][0]["resources"] == ["statefulsets/scale"]


def test_the_notes_say_what_to_patch(helm):
    values = example("sidecar")
    values["pools"]["chat"]["platform"] |= {"name": "llama", "resource_kind": "StatefulSet"}
    (notes,) = [text for path, text in helm.render(values).items() if path.endswith("NOTES.txt")]
    assert "patch statefulset llama --patch-file" in notes


def test_sidecars_in_a_namespace_where_their_configuration_is_not_are_refused(rendered):
    values = example("sidecar")
    values["pools"]["chat"]["platform"]["namespace"] = "far"
    with pytest.raises(Refused, match=r"pools\.chat\.platform\.namespace: sidecars are in the pods of far"):
        rendered(values)
    values["pools"]["chat"]["platform"]["namespace"] = "models"
    assert rendered(values)


def test_proxies_are_told_and_have_no_rights(rendered, tmp_path):
    manifests = rendered(example("proxies"))
    settings = settings_in(of_kind(manifests, "ConfigMap")[f"{NAME}-proxy"], tmp_path, "sidecar")
    assert settings.pools["chat"].platform == settings_of_a_told_pool(tmp_path).platform
    workload = of_kind(manifests, "Deployment")[f"{NAME}-proxy"]
    pod = pod_of(workload)
    assert workload["spec"]["replicas"] == 3
    assert not has_rights(pod)
    assert "serviceAccountName" not in pod
    assert pod["terminationGracePeriodSeconds"] >= settings.proxy.drain_grace + settings.proxy.drain_max + 10
    (spread,) = pod["topologySpreadConstraints"]
    assert spread["topologyKey"] == "kubernetes.io/hostname"
    assert (
        spread["labelSelector"]["matchLabels"].items()
        <= workload["spec"]["template"]["metadata"]["labels"].items()
    )
    budget = of_kind(manifests, "PodDisruptionBudget")[f"{NAME}-proxy"]["spec"]
    assert budget["selector"] == workload["spec"]["selector"]
    assert budget["maxUnavailable"] == 1
    # While no replica is there no proxy is ready, and nodes shall be drained all the same.
    assert budget["unhealthyPodEvictionPolicy"] == "AlwaysAllow"


def test_requests_go_to_proxies_and_never_to_controllers(rendered):
    manifests = rendered(example("proxies"))
    proxies = of_kind(manifests, "Deployment")[f"{NAME}-proxy"]["spec"]["selector"]["matchLabels"]
    services = of_kind(manifests, "Service")
    assert services[NAME]["spec"]["selector"] == proxies
    labels = workloads(manifests)[NAME]["spec"]["template"]["metadata"]["labels"]
    assert not proxies.items() <= labels.items()
    assert services[f"{NAME}-admin"]["spec"]["selector"].items() <= labels.items()


@pytest.mark.parametrize(
    ("persistent", "kind", "how"), [(True, "StatefulSet", "OnDelete"), (False, "Deployment", "Recreate")]
)
def test_for_keda_only_the_one_that_leads_answers_and_no_rolling_update_waits_for_the_other(
    rendered, persistent, kind, how
):
    values = example(
        "proxies", persistence={"enabled": persistent}, keda={"scaledObjects": {"chat": {"name": "chat"}}}
    )
    values["pools"]["chat"]["platform"] = {"kind": "keda", "dns": "http://chat:8000"}
    manifests = rendered(values)
    check(manifests)
    check_selectors(manifests)
    workload = workloads(manifests)[NAME]
    strategy = workload["spec"].get("updateStrategy") or workload["spec"].get("strategy")
    assert (workload["kind"], strategy["type"]) == (kind, how)
    admin = of_kind(manifests, "Service")[f"{NAME}-admin"]["spec"]
    assert not admin.get("publishNotReadyAddresses")
    # With one ready of two, a budget would keep the node of the one that leads from being drained for ever.
    assert of_kind(manifests, "PodDisruptionBudget").keys() == {f"{NAME}-proxy"}
    assert "keda" in [port["name"] for port in admin["ports"]]
    (scaled,) = of_kind(manifests, "ScaledObject").values()
    assert scaled["spec"]["triggers"][0]["metadata"]["scalerAddress"].startswith(f"{NAME}-admin.")


def test_everybody_who_must_know_the_token_of_the_admin_ports_does(rendered, tmp_path):
    values = example("sidecar", admin={"tokenSecret": "admin"})
    values["metrics"]["podMonitor"] = {"enabled": True}
    manifests = rendered(values)
    server = patched(manifests, tmp_path)
    check([*manifests, server])
    check_pod_is_confined(pod_of(server), containers(server)["autoscaler"])
    maps = of_kind(manifests, "ConfigMap")
    controller = settings_in(maps[NAME], tmp_path, "controller")
    sidecar = settings_in(maps[f"{NAME}-chat-sidecar"], tmp_path, "sidecar")
    file = controller.admin_access.token_file
    assert file == sidecar.admin_access.token_file == controller.pools["chat"].demand.reader.token_file
    for workload in (server, workloads(manifests)[NAME]):
        (mount,) = [
            each
            for each in containers(workload)["autoscaler"]["volumeMounts"]
            if each["mountPath"] == str(file.parent)
        ]
        (volume,) = [each for each in pod_of(workload)["volumes"] if each["name"] == mount["name"]]
        assert volume["secret"] == {"secretName": "admin", "items": [{"key": "token", "path": file.name}]}
    for kind, key in (("ServiceMonitor", "endpoints"), ("PodMonitor", "podMetricsEndpoints")):
        for monitor in of_kind(manifests, kind).values():
            assert monitor["spec"][key][0]["authorization"] == {
                "credentials": {"name": "admin", "key": "token"}
            }


def test_a_pod_monitor_scrapes_the_sidecars_too(rendered):
    values = example(
        "sidecar", metrics={"podMonitor": {"enabled": True, "labels": {"release": "prometheus"}}}
    )
    monitors = of_kind(rendered(values), "PodMonitor")
    assert monitors[f"{NAME}-chat"]["spec"]["selector"]["matchLabels"] == {"app": "chat"}
    # The alerts know all of them by their job.
    jobs = [
        rule["replacement"]
        for each in monitors.values()
        for rule in each["spec"]["podMetricsEndpoints"][0]["relabelings"]
        if rule["targetLabel"] == "job"
    ]
    assert jobs == ["inference-autoscaler"] * len(monitors) == ["inference-autoscaler"] * 2
    assert all(each["metadata"]["labels"]["release"] == "prometheus" for each in monitors.values())


@pytest.mark.parametrize(
    ("name", "changes", "told"),
    [
        ("sidecar", {"sidecars": {"servers": {}}}, "sidecars.servers.chat: missing"),
        ("sidecar", {"sidecars": {"servers": {"chat": {"container": "a"}}}}, "selector"),
        ("proxies", {"replicas": 2}, "set controllers.replicas or proxies.replicas"),
        ("proxies", {"persistence": {"existingClaim": "a"}}, "each controller has a history of its own"),
        ("proxies", {"topology": "mesh"}, "topology"),
        ("proxies", {"config": {"leadership": {"lease": "a"}}}, "leadership"),
    ],
)
def test_what_cannot_be_meant_is_refused(rendered, name, changes, told):
    with pytest.raises(Refused, match=re.escape(told)):
        rendered(example(name, **changes))


@pytest.mark.parametrize(
    ("key", "value"), [("signals", {"engine": {"preset": "vllm"}}), ("substitute", "other")]
)
def test_what_only_a_program_that_is_alone_does_is_refused(rendered, key, value):
    values = example("proxies")
    values["pools"]["chat"][key] = value
    with pytest.raises(Refused, match=f"pools.chat.{key}: only a program that is alone"):
        rendered(values)


def settings_of_a_told_pool(folder):
    file = {"data": {"autoscaler.yaml": "pools: {chat: {platform: {kind: controller}}}"}}
    return settings_in(file, folder, "sidecar").pools["chat"]
