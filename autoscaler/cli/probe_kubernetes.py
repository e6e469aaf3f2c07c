"""Whether the API server lets us in, what is to be scaled is there, and we may do all that we shall."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from autoscaler.cli.findings import Finding, Level
from autoscaler.errors import PlatformUnavailable
from autoscaler.platforms.kubernetes import KubernetesOptions
from autoscaler.platforms.kubernetes.access import load_access
from autoscaler.platforms.kubernetes.api import Api
from autoscaler.platforms.kubernetes.pods import members_of, misses_of
from autoscaler.platforms.kubernetes.target import Target, find_target, slices_path
from autoscaler.settings import PoolSettings

_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


async def probe_kubernetes(pool: PoolSettings, options: KubernetesOptions) -> list[Finding]:
    """Look at everything, change nothing."""
    api = Api(lambda: load_access(options.kubeconfig, options.context))
    try:
        return await _probe(api, f"pools.{pool.name}.platform", options)
    finally:
        await api.close()


async def _probe(api: Api, subject: str, options: KubernetesOptions) -> list[Finding]:
    try:
        target = await find_target(api, options)
        scale = await target.scale()
    except PlatformUnavailable as error:
        return [Finding(Level.PROBLEM, f"{subject}.name", str(error))]
    findings = [Finding(Level.OK, f"{subject}.name", f"{target} is there, with {scale.replicas} replicas")]
    findings.append(await _tried(f"{subject}.service", lambda: _service(api, target, options)))
    findings.append(await _tried(f"{subject}.rights", lambda: _rights(api, target, options)))
    return findings


async def _tried(subject: str, look: Callable[[], Awaitable[tuple[Level, str]]]) -> Finding:
    try:
        level, text = await look()
    except PlatformUnavailable as error:
        return Finding(Level.PROBLEM, subject, str(error))
    return Finding(level, subject, text)


async def _service(api: Api, target: Target, options: KubernetesOptions) -> tuple[Level, str]:
    selector = quote(f"kubernetes.io/service-name={options.service}", safe="")
    found = await api.get(f"{await slices_path(api, target.namespace)}?labelSelector={selector}")
    slices = found["items"]
    if not slices:
        text = (
            f"Service {options.service} has no EndpointSlice in {target.namespace}; mend its name or selector"
        )
        return Level.WARNING, text
    if (why := misses_of(slices, options.port)) is not None:
        return Level.WARNING, f"Service {options.service}: {why}"
    if options.port is None and len(ports := slices[0].get("ports") or ()) > 1:
        names = ", ".join(str(each.get("name") or each.get("port")) for each in ports)
        text = (
            f"Service {options.service} has several ports, and the first is taken; set port to one of {names}"
        )
        return Level.WARNING, text
    members = [
        each for each in members_of(slices, {}, options.port, options.is_https, ()) if not each.is_draining
    ]
    if not members and any(each.get("endpoints") for each in slices):
        return (
            Level.WARNING,
            f"no endpoint of {options.service} is ready at port {options.port or '(the first)'}",
        )
    return Level.OK, f"Service {options.service} has {len(members)} ready endpoint(s)"


async def _rights(api: Api, target: Target, options: KubernetesOptions) -> tuple[Level, str]:
    """Ask for each right; only what is not needed to scale is a warning."""
    group = options.api_version.rpartition("/")[0]
    needed = [
        Right(group, target.plural, "get", "scale", options.name),
        Right(group, target.plural, "patch", "scale", options.name),
        Right("", "pods", "list"),
        Right("", "pods", "watch"),
        Right("discovery.k8s.io", "endpointslices", "list"),
        Right("discovery.k8s.io", "endpointslices", "watch"),
        Right("", "pods", "patch", is_needed=False),
        Right("events.k8s.io", "events", "create", is_needed=False),
    ]
    return await review(api, target.namespace, needed)


@dataclass(frozen=True, slots=True)
class Right:
    """One thing that we may have to be allowed to do."""

    group: str
    resource: str
    verb: str
    subresource: str = ""
    name: str = ""
    is_needed: bool = True

    def __str__(self) -> str:
        what = f"{self.resource}/{self.subresource}" if self.subresource else self.resource
        return f"{self.verb} {what}"


async def review(api: Api, namespace: str, rights: Sequence[Right]) -> tuple[Level, str]:
    """Ask the API server for each right, and say which lack."""
    lacking = [right for right in rights if not await _is_allowed(api, namespace, right)]
    if not lacking:
        return Level.OK, "everything that is needed is allowed"
    level = Level.PROBLEM if any(right.is_needed for right in lacking) else Level.WARNING
    named = ", ".join(map(str, lacking))
    return level, f"not allowed: {named}; bind the Role of deploy/kubernetes/rbac.yaml"


async def _is_allowed(api: Api, namespace: str, right: Right) -> bool:
    attributes = {
        "namespace": namespace,
        "group": right.group,
        "resource": right.resource,
        "subresource": right.subresource,
        "verb": right.verb,
        "name": right.name,
    }
    asked = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {key: value for key, value in attributes.items() if value}},
    }
    return bool((await api.post(_REVIEWS, asked))["status"]["allowed"])
