"""The Helm chart, rendered by Helm itself; what several programs do together is in test_helm_topologies."""

import json
import re
from pathlib import Path

import pytest
import yaml

from autoscaler.platforms.keda import KedaOptions
from tests.deploy.helm_process import ABSENT, Helm, Refused, installed
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

pytestmark = pytest.mark.skipif(not installed(), reason=ABSENT)

CHART = DEPLOY / "helm" / "inference-autoscaler"
EXAMPLES = ["keda", "recommend-only", "standalone"]
"""Of one program that does everything."""
NAME = "inference-autoscaler"
POOL = {"server": {"kind": "openai"}, "platform": {"kind": "kubernetes", "name": "chat", "service": "chat"}}
KEDA = {"server": {"kind": "openai"}, "platform": {"kind": "keda", "dns": "http://chat:8000"}}
STATIC = {"platform": {"kind": "static", "urls": ["http://a:8000"]}}


def example(name):
    return yaml.safe_load((CHART / "examples" / f"{name}.yaml").read_text("utf-8"))


@pytest.fixture(scope="module")
def helm():
    started = Helm(CHART)
    yield started
    started.close()


@pytest.fixture(scope="module")
def rendered(helm):
    """Return what makes the manifests of the chart, as release `inference-autoscaler` in `models`."""
    return helm.manifests


def roles(manifests):
    """Return the rules of each Role, as verbs by resource."""
    made = of_kind(manifests, "Role")
    return {
        name: {resource: rule["verbs"] for rule in role["rules"] for resource in rule["resources"]}
        for name, role in made.items()
    }


def test_helm_finds_nothing_wrong(helm):
    found = helm.lint()
    assert found["errors"] == []
    assert [each["error"] for each in found["messages"]] == ["icon is recommended"]


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_renders_to_manifests_that_kubernetes_takes(rendered, name):
    manifests = rendered(example(name))
    check(manifests)
    check_selectors(manifests)
    (workload,) = of_kind(manifests, "Deployment").values()
    (container,) = pod_of(workload)["containers"]
    check_pod_is_confined(pod_of(workload), container)
    check_probes(container)


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_configuration_of_an_example_is_one(rendered, name, tmp_path):
    manifests = rendered(example(name))
    settings = settings_in(of_kind(manifests, "ConfigMap")[NAME], tmp_path)
    assert settings.pools.keys() == example(name)["pools"].keys()
    assert settings.history == Path("/var/lib/autoscaler/autoscaler.db")


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_pod_is_given_longer_than_it_drains(rendered, name, tmp_path):
    manifests = rendered(example(name))
    proxy = settings_in(of_kind(manifests, "ConfigMap")[NAME], tmp_path).proxy
    (workload,) = of_kind(manifests, "Deployment").values()
    given = pod_of(workload)["terminationGracePeriodSeconds"]
    assert given >= proxy.drain_grace + proxy.drain_max + 10


def test_every_pool_has_a_role_for_its_one_object(rendered):
    assert roles(rendered(example("standalone"))) == {
        f"{NAME}-chat": {
            "deployments/scale": ["get", "patch"],
            "endpointslices": ["list", "watch"],
            "pods": ["list", "watch", "patch"],
            "events": ["create"],
        },
        f"{NAME}-embed": {
            "leaderworkersets/scale": ["get", "patch"],
            "endpointslices": ["list", "watch"],
            "pods": ["list", "watch", "patch"],
            "events": ["create"],
        },
    }
    made = of_kind(rendered(example("standalone")), "Role")
    assert made[f"{NAME}-embed"]["rules"][0]["apiGroups"] == ["leaderworkerset.x-k8s.io"]
    assert made[f"{NAME}-embed"]["rules"][0]["resourceNames"] == ["embed"]


def test_the_role_is_the_one_that_ships_by_itself_without_leader_election(rendered):
    (ours,) = of_kind(rendered({"pools": {"chat": POOL}}), "Role").values()
    shipped = yaml.safe_load_all((DEPLOY / "kubernetes" / "rbac.yaml").read_text("utf-8"))
    rules = next(each["rules"] for each in shipped if each["kind"] == "Role")
    assert ours["rules"] == [each for each in rules if "coordination.k8s.io" not in each["apiGroups"]]


def test_in_recommend_mode_the_program_may_only_look(rendered):
    assert roles(rendered(example("recommend-only"))) == {
        f"{NAME}-chat": {
            "deployments/scale": ["get"],
            "endpointslices": ["list", "watch"],
            "pods": ["list", "watch"],
        }
    }


def test_a_core_resource_and_another_namespace_have_their_role_there(rendered):
    platform = {**POOL["platform"], "api_version": "v1", "resource_kind": "ReplicationController"}
    manifests = rendered({"pools": {"old_One": {**POOL, "platform": {**platform, "namespace": "far"}}}})
    check(manifests)
    role = of_kind(manifests, "Role")[f"{NAME}-old-one"]
    assert (role["metadata"]["namespace"], role["rules"][0]["apiGroups"]) == ("far", [""])
    (binding,) = of_kind(manifests, "RoleBinding").values()
    assert binding["subjects"][0]["namespace"] == "models"


def test_a_pod_without_anything_to_ask_has_no_token(rendered):
    (workload,) = of_kind(rendered({"pools": {"a": STATIC}}), "Deployment").values()
    assert pod_of(workload)["automountServiceAccountToken"] is False
    assert not of_kind(rendered({"pools": {"a": STATIC}}), "Role")


def test_the_scaled_object_is_the_one_that_ships_but_for_the_address(rendered, tmp_path):
    manifests = rendered(example("keda"))
    ours = of_kind(manifests, "ScaledObject")["chat"]["spec"]
    shipped = yaml.safe_load((DEPLOY / "keda" / "scaledobject.yaml").read_text("utf-8"))["spec"]
    address = ours["triggers"][0]["metadata"].pop("scalerAddress")
    shipped["triggers"][0]["metadata"].pop("scalerAddress")
    assert ours == shipped
    host, port = address.split(":")
    service = of_kind(manifests, "Service")[host.partition(".")[0]]
    assert int(port) in [each["port"] for each in service["spec"]["ports"] if each["name"] == "keda"]
    pool = settings_in(of_kind(manifests, "ConfigMap")[NAME], tmp_path).pools["chat"]
    assert isinstance(pool.platform, KedaOptions)
    assert (ours["minReplicaCount"], ours["maxReplicaCount"]) == (0, pool.policy.replicas_max)


def test_a_scaled_object_has_the_bounds_of_a_pool_that_says_none(rendered, tmp_path):
    manifests = rendered({"pools": {"chat": KEDA}, "keda": {"scaledObjects": {"chat": {"name": "x"}}}})
    pool = settings_in(of_kind(manifests, "ConfigMap")[NAME], tmp_path).pools["chat"]
    spec = of_kind(manifests, "ScaledObject")["chat"]["spec"]
    assert spec["minReplicaCount"] == pool.policy.replicas_min
    assert spec["maxReplicaCount"] == pool.policy.replicas_max


def test_monitors_scrape_the_admin_port_that_there_is(rendered):
    on = {"enabled": True}
    every = {"serviceMonitor": on, "podMonitor": on, "prometheusRule": on, "dashboard": on}
    manifests = rendered({"pools": {"chat": POOL}, "metrics": every})
    check(manifests)
    (monitor,) = of_kind(manifests, "ServiceMonitor").values()
    (pods,) = of_kind(manifests, "PodMonitor").values()
    admin = of_kind(manifests, "Service")[f"{NAME}-admin"]
    assert monitor["spec"]["selector"]["matchLabels"].items() <= admin["metadata"]["labels"].items()
    assert monitor["spec"]["endpoints"] == [{"interval": "15s", "path": "/metrics", "port": "admin"}]
    assert pods["spec"]["podMetricsEndpoints"] == monitor["spec"]["endpoints"]
    rules = yaml.safe_load((DEPLOY / "prometheus" / "rules.yaml").read_text("utf-8"))
    assert next(iter(of_kind(manifests, "PrometheusRule").values()))["spec"] == rules
    dashboard = of_kind(manifests, "ConfigMap")[f"{NAME}-dashboard"]["data"]["autoscaler.json"]
    assert json.loads(dashboard) == json.loads((DEPLOY / "grafana" / "autoscaler.json").read_text("utf-8"))


def test_nothing_of_operators_is_made_unless_it_is_asked_for(rendered):
    kinds = {each["kind"] for each in rendered({"pools": {"chat": POOL}})}
    assert kinds == {
        "ConfigMap", "Deployment", "NetworkPolicy", "PersistentVolumeClaim", "Role", "RoleBinding", "Service",
        "ServiceAccount",
    }  # fmt: skip


def test_a_load_balancer_does_not_show_the_admin_port(rendered):
    services = of_kind(rendered({"pools": {"chat": POOL}, "service": {"type": "LoadBalancer"}}), "Service")
    assert [port["name"] for port in services[NAME]["spec"]["ports"]] == ["http"]
    assert services[f"{NAME}-admin"]["spec"]["type"] == "ClusterIP"


@pytest.mark.parametrize(("grpc_port", "ports"), [(8001, ["http", "grpc"]), ("none", ["http"])])
def test_there_is_a_grpc_port_if_a_pool_takes_grpc(rendered, grpc_port, ports, tmp_path):
    pool = {**STATIC, "server": {"kind": "triton", "grpc_port": grpc_port}}
    manifests = rendered({"pools": {"a": pool}})
    check_selectors(manifests)
    assert [port["name"] for port in of_kind(manifests, "Service")[NAME]["spec"]["ports"]] == ports
    assert settings_in(of_kind(manifests, "ConfigMap")[NAME], tmp_path).pools["a"].speaks_grpc == (
        "grpc" in ports
    )


def test_large_numbers_and_words_that_yaml_knows_reach_the_program_as_written(rendered, tmp_path):
    pool = {**STATIC, "queue": {"requests_max": 2_000_000, "bytes_max": "3GiB"}, "objective": {"wait": "5s"}}
    values = {"pools": {"a": pool}, "config": {"http": {"body_max": 1_073_741_824}, "control_interval": "5s"}}
    settings = settings_in(of_kind(rendered(values), "ConfigMap")[NAME], tmp_path)
    assert settings.pools["a"].queue.requests_max == 2_000_000
    assert settings.proxy.body_bytes_max == 2**30
    assert settings.control.interval == 5.0


def test_a_changed_configuration_starts_new_pods(rendered):
    def annotation(pool):
        (workload,) = of_kind(rendered({"pools": {"chat": pool}}), "Deployment").values()
        return workload["spec"]["template"]["metadata"]["annotations"]["checksum/config"]

    assert annotation(POOL) == annotation(POOL) != annotation({**POOL, "slots_per_replica": 3})


def test_without_persistence_the_history_ends_with_the_pod(rendered):
    values = {"pools": {"a": STATIC}, "persistence": {"enabled": False}, "replicas": 3}
    manifests = rendered({**values, "podDisruptionBudget": {"enabled": True}})
    check(manifests)
    assert not of_kind(manifests, "PersistentVolumeClaim")
    (workload,) = of_kind(manifests, "Deployment").values()
    assert {"name": "state", "emptyDir": {}} in pod_of(workload)["volumes"]
    assert "strategy" not in workload["spec"]


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({}, "pools is empty"),
        ({"pools": {"a": STATIC}, "replicas": 2}, "set persistence.enabled to false"),
        ({"pools": {"a": POOL}, "replicas": 2, "persistence": {"enabled": False}}, "set topology to proxies"),
        (
            {"pools": {"a": {**STATIC, "demand": {"kind": "list"}}}},
            "a program that is alone measures it itself",
        ),
        ({"pools": {"a": KEDA}, "keda": {"scaledObjects": {"b": {"name": "x"}}}}, "there is no such pool"),
        ({"pools": {"a": POOL}, "keda": {"scaledObjects": {"a": {"name": "x"}}}}, "set it to keda"),
        ({"pools": {"a": STATIC}, "replica": 2}, "replica"),
        ({"pools": {"a": STATIC}, "config": {"listen": ":80"}}, "listen"),
        ({"pools": {"a": {"platform": {"kind": "local"}}}}, "kind"),
        ({"pools": {"a": {}}}, "platform"),
        ({"pools": {"a": STATIC}, "image": {"digest": "sha256:1"}}, "digest"),
    ],
)
def test_what_cannot_be_meant_is_refused(rendered, values, told):
    with pytest.raises(Refused, match=re.escape(told)):
        rendered(values)


def test_a_digest_pins_the_image(rendered):
    digest = f"sha256:{'0' * 64}"
    (workload,) = of_kind(
        rendered({"pools": {"a": STATIC}, "image": {"digest": digest}}), "Deployment"
    ).values()
    assert pod_of(workload)["containers"][0]["image"] == f"inference-autoscaler@{digest}"
