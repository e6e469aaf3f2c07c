"""The Helm chart, rendered by Helm itself; what several programs do together is in test_helm_topologies."""

import json
import re
from pathlib import Path

import pytest
import yaml

from autoscaler.cli.admin_client import TOKEN_FILE
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
WEBHOOK = {"platform": {"kind": "webhook", "url": "http://scaler", "dns": "http://a:8000"}}


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
    ours = of_kind(manifests, "ScaledObject")[f"{NAME}-chat"]["spec"]
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
    spec = of_kind(manifests, "ScaledObject")[f"{NAME}-chat"]["spec"]
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
    one_job = {"targetLabel": "job", "replacement": "inference-autoscaler"}
    assert monitor["spec"]["endpoints"] == [
        {"interval": "15s", "path": "/metrics", "port": "admin", "relabelings": [one_job]}
    ]
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


@pytest.mark.parametrize("pool", [POOL, KEDA, WEBHOOK])
def test_two_programs_never_scale_the_same_pool_during_an_upgrade(rendered, pool):
    values = {"pools": {"a": pool}, "persistence": {"enabled": False}}
    (workload,) = of_kind(rendered(values), "Deployment").values()
    assert workload["spec"]["strategy"] == {"type": "Recreate"}
    # Server-side apply cannot go from one strategy to the other, and many begin with recommendations.
    (before,) = of_kind(rendered({**values, "mode": "recommend"}), "Deployment").values()
    assert before["spec"]["strategy"] == workload["spec"]["strategy"]
    (harmless,) = of_kind(rendered({**values, "mode": "recommend", "replicas": 2}), "Deployment").values()
    assert "strategy" not in harmless["spec"]


@pytest.mark.parametrize("topology", ["standalone", "proxies", "sidecar"])
@pytest.mark.parametrize("release", ["r", "my.release", "a" * 53])
@pytest.mark.parametrize("pool", ["chat", "Meta.Llama_3", "p" * 62 + "1", "_x_"])
def test_names_are_taken_by_kubernetes_whatever_those_of_pools_and_releases_are(
    rendered, topology, release, pool
):
    manifests = rendered(values_with_pools(topology, pool, "q" * 62 + "1", "q" * 62 + "2"), release)
    check(manifests)
    named = [(each["kind"], each["metadata"]["name"]) for each in manifests]
    assert len(set(named)) == len(named)
    of_services = [name for kind, name in named if kind == "Service"]
    assert all(re.fullmatch(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?", name) for name in of_services)
    assert all(re.fullmatch(r"[a-z]([-a-z0-9]{0,251}[a-z0-9])?", name) for _, name in named)


def values_with_pools(topology, *pools):
    """Return values with pools that the program scales itself, and all that can be made for them."""
    on = {"enabled": True}
    kept = {k: v for k, v in POOL["platform"].items() if topology != "sidecar" or k != "service"}
    values = {
        "topology": topology,
        "pools": {pool: {**POOL, "platform": kept} for pool in pools},
        "metrics": {"serviceMonitor": on, "podMonitor": on, "prometheusRule": on, "dashboard": on},
    }
    servers = {pool: {"selector": {"app": "a"}, "container": "server"} for pool in pools}
    return values | ({"sidecars": {"servers": servers}} if topology == "sidecar" else {})


@pytest.mark.parametrize(
    ("topology", "pools", "told"),
    [
        ("standalone", ["a_b", "a.b"], "pools.a_b: in Kubernetes its objects would be named …-a-b"),
        ("standalone", ["__"], "nothing in Kubernetes can be named so"),
        ("sidecar", ["chat", "chat-admin"], "as those of pools.chat are"),
        ("sidecar", ["admin"], "as those of the chart are"),
        ("proxies", ["controllers"], "as those of the chart are"),
    ],
)
def test_pools_whose_objects_would_have_one_name_are_refused(rendered, topology, pools, told):
    with pytest.raises(Refused, match=re.escape(told)):
        rendered(values_with_pools(topology, *pools))


def test_values_that_are_left_empty_are_those_of_the_chart(rendered):
    pools = {"pools": {"a": STATIC}}
    as_it_comes = rendered(pools)
    for empty in (
        {"image": {"tag": None, "digest": None}},
        {"nameOverride": None},
        {"fullnameOverride": None},
    ):
        assert rendered(pools | empty) == as_it_comes
    assert rendered(values_with_pools("proxies", "admin"))


def test_two_releases_of_one_namespace_share_nothing(rendered):
    values = {"pools": {"chat": KEDA}, "keda": {"scaledObjects": {"chat": {"name": "x"}}}}
    one, other = ({(m["kind"], m["metadata"]["name"]) for m in rendered(values, r)} for r in ("one", "other"))
    assert not one & other


def test_a_section_that_is_emptied_is_named(rendered):
    with pytest.raises(Refused, match=r"'/service': missing propert.*'port'"):
        rendered({"pools": {"a": STATIC}, "service": {"port": None}})
    with pytest.raises(Refused, match="missing property 'networkPolicy'"):
        rendered({"pools": {"a": STATIC}, "networkPolicy": None})
    assert rendered({"pools": {"a": STATIC}, "config": None})


def test_who_asks_in_the_pod_has_the_token(rendered):
    (workload,) = of_kind(
        rendered({"pools": {"a": STATIC}, "admin": {"tokenSecret": "t"}}), "Deployment"
    ).values()
    (container,) = pod_of(workload)["containers"]
    (file,) = [each["value"] for each in container["env"] if each["name"] == TOKEN_FILE]
    assert any(file.startswith(each["mountPath"] + "/") for each in container["volumeMounts"])


def test_the_services_say_when_clients_speak_tls(rendered):
    triton = {**STATIC, "server": {"kind": "triton"}}

    def spoken(**config):
        ports = of_kind(rendered({"pools": {"a": triton}, "config": config}), "Service")[NAME]["spec"][
            "ports"
        ]
        return {port["name"]: port["appProtocol"] for port in ports}

    assert spoken() == {"http": "http", "grpc": "kubernetes.io/h2c"}
    assert spoken(tls=None, admin_access=None) == spoken(tls={"certificate": "none"}) == spoken()
    assert spoken(tls={"certificate": "/c", "key": "/k"}) == {"http": "https", "grpc": "https"}


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
        ({"pools": {"a": STATIC}, "config": {"listen": ":80"}}, "config.listen: the chart sets it"),
        (
            {"pools": {"a": STATIC}, "config": {"grpc": {"listen": ":80"}}},
            "config.grpc.listen: the chart sets",
        ),
        ({"pools": {"a": STATIC}, "config": {"admin_access": {"certificate": "/c"}}}, "without TLS"),
        (
            {
                "pools": {"a": KEDA},
                "keda": {"scaledObjects": {"a": {"name": "x"}}},
                "config": {"keda": {"certificate": "/c", "key": "/k"}},
            },
            "config.keda.certificate",
        ),
        (
            {"pools": {"a": WEBHOOK}, "replicas": 2, "persistence": {"enabled": False}},
            "set topology to proxies",
        ),
        ({"pools": {"a": STATIC}, "podLabels": {"app.kubernetes.io/name": "x"}}, "finds its pods by it"),
        ({"pools": {"a": STATIC}, "fullnameOverride": "Foo_Bar"}, "fullnameOverride"),
        ({"pools": {"a": STATIC}, "nameOverride": "scaler."}, "nameOverride"),
        ({"pools": {"a": STATIC}, "fullnameOverride": "x", "image": {"tag": "sha256:1"}}, "/image/tag"),
        ({"pools": {"a": STATIC}, "image": {"repository": "here:5000/a:1"}}, "/image/repository"),
        ({"pools": {"a": STATIC}, "env": [{"name": "A", "value": 1}]}, "/env/0/value"),
        ({"pools": {"a": STATIC}, "persistence": {"size": "1 Gi"}}, "/persistence/size"),
        ({"pools": {"a": STATIC}, "podDisruptionBudget": {"maxUnavailable": "half"}}, "maxUnavailable"),
        ({"pools": {"a": STATIC}, "metrics": {"podMonitor": {"interval": "15"}}}, "interval"),
        ({"pools": {"a": {"platform": {"kind": "local"}}}}, "kind"),
        ({"pools": {"a": {}}}, "platform"),
        ({"pools": {"a": STATIC}, "image": {"digest": "sha256:1"}}, "digest"),
    ],
)
def test_what_cannot_be_meant_is_refused(rendered, values, told):
    with pytest.raises(Refused, match=re.escape(told)):
        rendered(values)


def test_a_name_that_begins_with_a_digit_is_refused_for_a_service_may_not_have_it(rendered):
    with pytest.raises(Refused, match="set fullnameOverride"):
        rendered({"pools": {"a": STATIC}}, "1st")
    assert rendered({"pools": {"a": STATIC}, "fullnameOverride": "first"}, "1st")


def test_a_digest_pins_the_image(rendered):
    digest = f"sha256:{'0' * 64}"
    (workload,) = of_kind(
        rendered({"pools": {"a": STATIC}, "image": {"digest": digest}}), "Deployment"
    ).values()
    assert pod_of(workload)["containers"][0]["image"] == f"inference-autoscaler@{digest}"
