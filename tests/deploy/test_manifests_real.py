"""What ships, given to a real API server: it sees what no schema says, such as a mount without a volume.

Needs the binaries of `make test-kubernetes`; KUBERNETES_BIN names their folder. That server is older than the
manifests: their group `policy/v1` was called otherwise then.
"""

import json
import os
import shutil
import subprocess
import urllib.error
from pathlib import Path

import pytest
import yaml

from tests.deploy import helm_process
from tests.deploy.manifests import DEPLOY, OF_OPERATORS, Manifest, of_kind, workloads
from tests.deploy.test_helm_chart import values_with_pools
from tests.deploy.test_helm_topologies import CHART, MODEL_SERVER, NAME
from tests.fakes.kube_local import KubeLocal

BIN = os.environ.get("KUBERNETES_BIN", "")
OVERLAYS = sorted(path.name for path in (DEPLOY / "kubernetes" / "overlays").iterdir())
EXAMPLES = sorted(path.stem for path in (CHART / "examples").glob("*.yaml"))
NAMED_OTHERWISE = {"policy/v1": "policy/v1beta1"}
STRATEGIC = "application/strategic-merge-patch+json"

pytestmark = pytest.mark.skipif(
    not (Path(BIN) / "kube-apiserver").is_file() or shutil.which("etcd") is None,
    reason="needs KUBERNETES_BIN with kube-apiserver, and etcd: make test-kubernetes says how",
)


@pytest.fixture(scope="module")
def cluster():
    with KubeLocal(BIN) as running:
        yield running


@pytest.fixture(scope="module")
def rendered():
    if not helm_process.installed():
        pytest.skip(helm_process.ABSENT)
    helm = helm_process.Helm(CHART)
    yield helm.manifests
    helm.close()


def applied(cluster: KubeLocal, namespace: str, manifests: list[Manifest]) -> str:
    """Make all of them in a namespace of their own; return its path."""
    cluster.call("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
    for manifest in manifests:
        version = NAMED_OTHERWISE.get(manifest["apiVersion"], manifest["apiVersion"])
        if version.partition("/")[0] in OF_OPERATORS:
            continue
        metadata = {key: value for key, value in manifest["metadata"].items() if key != "namespace"}
        root = f"/{'apis' if '/' in version else 'api'}/{version}/namespaces/{namespace}"
        made = {**manifest, "apiVersion": version, "metadata": metadata}
        try:
            cluster.call("POST", f"{root}/{plural(manifest['kind'])}", made)
        except urllib.error.HTTPError as error:
            pytest.fail(f"{manifest['kind']} {metadata['name']}: {json.load(error)['message']}")
    return f"/apis/apps/v1/namespaces/{namespace}"


def plural(kind: str) -> str:
    return {"NetworkPolicy": "networkpolicies"}.get(kind, f"{kind.lower()}s")


@pytest.mark.parametrize("name", OVERLAYS)
def test_an_overlay_is_taken(cluster, name):
    built = ["kubectl", "kustomize", str(DEPLOY / "kubernetes" / "overlays" / name)]
    run = subprocess.run(built, capture_output=True, text=True, timeout=60, check=True)
    manifests = list(yaml.safe_load_all(run.stdout))
    apps = applied(cluster, f"overlay-{name}", manifests)
    made = [
        each
        for kind in ("deployments", "statefulsets")
        for each in cluster.call("GET", f"{apps}/{kind}")["items"]
    ]
    assert {each["metadata"]["name"] for each in made} == workloads(manifests).keys()


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_of_the_chart_is_taken(cluster, rendered, name):
    manifests = rendered(yaml.safe_load((CHART / "examples" / f"{name}.yaml").read_text("utf-8")))
    applied(cluster, f"chart-{name}", manifests)


@pytest.mark.parametrize("topology", ["standalone", "proxies", "sidecar"])
def test_objects_of_pools_and_releases_with_long_names_are_taken(cluster, rendered, topology):
    values = values_with_pools(topology, "p" * 63, "Meta.Llama_3")
    applied(cluster, f"long-{topology}", rendered(values, "a" * 53))


def test_the_patch_is_taken_and_the_second_time_changes_nothing(cluster, rendered):
    manifests = rendered(yaml.safe_load((CHART / "examples" / "sidecar.yaml").read_text("utf-8")))
    patch = yaml.safe_load(of_kind(manifests, "ConfigMap")[f"{NAME}-sidecar-patches"]["data"]["chat.yaml"])
    server = f"{applied(cluster, 'patched', [MODEL_SERVER])}/deployments/chat"
    first = cluster.call("PATCH", server, patch, kind=STRATEGIC)
    second = cluster.call("PATCH", server, patch, kind=STRATEGIC)
    names = [each["name"] for each in first["spec"]["template"]["spec"]["containers"]]
    assert sorted(names) == ["autoscaler", "logs", "server"]
    assert first["metadata"]["generation"] == second["metadata"]["generation"]
