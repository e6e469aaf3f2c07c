"""What is checked of every manifest that ships, whoever renders it."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import kubernetes_validate

from autoscaler.settings import Settings, load
from autoscaler.settings.for_command import Command

DEPLOY = Path(__file__).parents[2] / "deploy"
KUBERNETES = "1.37"
OF_OPERATORS = frozenset({"keda.sh", "monitoring.coreos.com"})
"""API groups whose schemas are not Kubernetes' own."""

Manifest = dict[str, Any]


def check(manifests: Iterable[Manifest]) -> None:
    """Hold the manifests against the published schemas of Kubernetes, strictly."""
    for manifest in manifests:
        if manifest["apiVersion"].partition("/")[0] not in OF_OPERATORS:
            kubernetes_validate.validate(manifest, KUBERNETES, strict=True)


def of_kind(manifests: Iterable[Manifest], kind: str) -> dict[str, Manifest]:
    """Return those of one kind, by name."""
    return {each["metadata"]["name"]: each for each in manifests if each["kind"] == kind}


def workloads(manifests: Iterable[Manifest]) -> dict[str, Manifest]:
    """Return what makes pods, by name."""
    return {
        each["metadata"]["name"]: each for each in manifests if each["kind"] in ("Deployment", "StatefulSet")
    }


def settings_in(config_map: Manifest, folder: Path, command: Command = "run") -> Settings:
    """Load the configuration that a ConfigMap holds, as the program would for a command."""
    file = folder / "autoscaler.yaml"
    file.write_text(config_map["data"]["autoscaler.yaml"], "utf-8")
    return load(file, {}, command)


def pod_of(workload: Manifest) -> Manifest:
    """Return the specification of the pods of a Deployment or StatefulSet."""
    return workload["spec"]["template"]["spec"]


def has_rights(pod: Manifest) -> bool:
    """Whether the pod is given a token for the API server."""
    return pod.get("automountServiceAccountToken", True)


def check_pod_is_confined(pod: Manifest, container: Manifest) -> None:
    """Check that our container has no rights on its machine that it does not need."""
    both = {**pod.get("securityContext", {}), **container["securityContext"]}
    assert both["runAsNonRoot"] is True
    assert both["runAsUser"] >= 1000
    assert both["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert container["securityContext"]["allowPrivilegeEscalation"] is False
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    writable = {each["mountPath"] for each in container["volumeMounts"] if not each.get("readOnly")}
    assert writable <= {"/var/lib/autoscaler", "/tmp"}


def check_probes(container: Manifest) -> None:
    """Check that health and readiness are asked at the admin listener."""
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports["admin"] == 8082
    assert container["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": "admin"}
    assert container["readinessProbe"]["httpGet"]["path"] in ("/readyz", "/healthz")
    assert container["readinessProbe"]["httpGet"]["port"] == "admin"


def check_selectors(manifests: list[Manifest]) -> None:
    """Check that each Service, budget and policy selects pods, and names ports, that there are."""
    pods = [
        (each["spec"]["template"]["metadata"]["labels"], pod_of(each))
        for each in workloads(manifests).values()
    ]
    for kind in ("Service", "PodDisruptionBudget", "NetworkPolicy"):
        for manifest in of_kind(manifests, kind).values():
            spec = manifest["spec"]
            selector = spec.get("podSelector", spec.get("selector"))
            chosen = _chosen(pods, selector.get("matchLabels", selector))
            assert chosen, f"{kind} {manifest['metadata']['name']} selects nothing"
            names = {
                port["name"] for pod in chosen for each in _containers(pod) for port in each.get("ports", [])
            }
            assert _named_ports(kind, spec) <= names


def _containers(pod: Manifest) -> list[Manifest]:
    return [*pod["containers"], *pod.get("initContainers", [])]


def _chosen(pods: list[tuple[Mapping[str, str], Manifest]], labels: Mapping[str, str]) -> list[Manifest]:
    return [pod for have, pod in pods if labels.items() <= have.items()]


def _named_ports(kind: str, spec: Manifest) -> set[str]:
    if kind == "Service":
        return {port["targetPort"] for port in spec["ports"] if isinstance(port.get("targetPort"), str)}
    rules = spec.get("ingress", []) if kind == "NetworkPolicy" else []
    return {port["port"] for rule in rules for port in rule["ports"] if isinstance(port["port"], str)}
