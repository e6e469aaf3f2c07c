"""What is scaled: found by its kind, read and changed through its `/scale` subresource.

That subresource looks the same for everything that has one: Deployments, StatefulSets, LeaderWorkerSets, and
any resource of somebody's own that declares it. Changes are made to the version that was read, so one that
somebody else made in between is seen (409), and taken into account by reading anew.
"""

import socket
from dataclasses import dataclass
from datetime import UTC, datetime

from autoscaler.errors import PlatformUnavailable
from autoscaler.platforms.kubernetes.api import FORBIDDEN, NOT_FOUND, Api, ApiRefused, Json, understood
from autoscaler.platforms.kubernetes.options import KubernetesOptions

_REPORTER = "inference-autoscaler"


@dataclass(frozen=True, slots=True)
class Scale:
    """What `/scale` says."""

    replicas: int
    """As they are asked for [1]."""
    selector: str
    """Labels of its pods."""
    version: str
    uid: str


class Target:
    """One thing that is scaled.

    Parameters
    ----------
    api : Api
        The API server.
    options : KubernetesOptions
        Which thing.
    namespace : str
        Where it is.
    path : str
        Of the thing itself.
    """

    def __init__(self, api: Api, options: KubernetesOptions, namespace: str, path: str) -> None:
        self._api, self._options, self._path = api, options, path
        self.namespace, self.plural = namespace, path.split("/")[-2]

    def __str__(self) -> str:
        return f"{self._options.kind} {self.namespace}/{self._options.name}"

    async def scale(self) -> Scale:
        """Read it. Raises PlatformUnavailable if that cannot be done."""
        try:
            return self._read(await self._api.get(f"{self._path}/scale"))
        except ApiRefused as error:
            remedies = {
                NOT_FOUND: f"; set name and namespace, or make {self}",
                FORBIDDEN: f", with {self._options.name} in its resourceNames, or set name and namespace",
            }
            if error.status not in remedies:
                raise
            raise ApiRefused(error.status, f"{error}{remedies[error.status]}") from error

    async def change(self, seen: Scale, replicas: int) -> Scale:
        """Ask for `replicas` instead of what was `seen`. Raises ApiRefused (409) if it has changed since."""
        change = {"metadata": {"resourceVersion": seen.version}, "spec": {"replicas": replicas}}
        return self._read(await self._api.patch(f"{self._path}/scale", change))

    async def say(self, note: str, reason: str, uid: str, wall_time: float) -> None:
        """Leave an Event at the thing, for whoever describes it."""
        at = datetime.fromtimestamp(wall_time, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        options = self._options
        event = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"generateName": f"{options.name[:200]}-", "namespace": self.namespace},
            "eventTime": at,
            "type": "Normal",
            "reason": reason,
            "action": "Scale",
            "note": note[:1000],
            "reportingController": _REPORTER,
            "reportingInstance": f"{_REPORTER}-{socket.gethostname()}"[:128],
            "regarding": {
                "apiVersion": options.api_version,
                "kind": options.kind,
                "namespace": self.namespace,
                "name": options.name,
                "uid": uid,
            },
        }
        await self._api.post(f"/apis/events.k8s.io/v1/namespaces/{self.namespace}/events", event)

    async def annotate(self, pod: Json, key: str, value: str | None) -> None:
        """Set an annotation of a pod, or take it off; and note it in `pod`, till the watch tells."""
        path = f"/api/v1/namespaces/{self.namespace}/pods/{pod['metadata']['name']}"
        await self._api.patch(path, {"metadata": {"annotations": {key: value}}})
        pod["metadata"]["annotations"] = {**(pod["metadata"].get("annotations") or {}), key: value}

    def _read(self, found: Json) -> Scale:
        with understood(f"{self._path}/scale"):
            metadata = found["metadata"]
            scale = Scale(
                replicas=int(found.get("spec", {}).get("replicas") or 0),
                selector=str(found.get("status", {}).get("selector") or ""),
                version=str(metadata["resourceVersion"]),
                uid=str(metadata["uid"]),
            )
        if not scale.selector:  # it would select every pod of the namespace
            raise PlatformUnavailable(
                f"the /scale of {self} does not say which pods are its own; "
                f"declare labelSelectorPath for {self._options.kind}, or wait until its controller fills it"
            )
        return scale


async def slices_path(api: Api, namespace: str) -> str:
    """Return where EndpointSlices are listed; clusters before 1.21 have them as v1beta1, of the same form."""
    path = "/apis/discovery.k8s.io"
    found = await api.get(path)
    with understood(path):
        versions = [str(each["version"]) for each in found["versions"]]
        version = "v1" if "v1" in versions else versions[0]
    return f"/apis/discovery.k8s.io/{version}/namespaces/{namespace}/endpointslices"


async def find_target(api: Api, options: KubernetesOptions) -> Target:
    """Find the thing by its kind. Raises PlatformUnavailable if there is none, or it has no `/scale`."""
    version = options.api_version
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    try:
        found = await api.get(root)
    except ApiRefused as error:
        if error.status != NOT_FOUND:
            raise
        raise PlatformUnavailable(
            f"the API server has no {version}; set api_version to that of {options.kind}, "
            "as `kubectl api-resources` shows it"
        ) from error
    with understood(root):
        kinds = {str(each["name"]): str(each["kind"]) for each in found["resources"]}
    names = [name for name, kind in kinds.items() if kind == options.kind and "/" not in name]
    if not names:
        raise PlatformUnavailable(f"{version} has no kind {options.kind}; set kind, as in `Deployment`")
    if f"{names[0]}/scale" not in kinds:
        raise PlatformUnavailable(f"{options.kind} of {version} has no /scale; name something that has")
    namespace = options.namespace or await api.namespace()
    return Target(api, options, namespace, f"{root}/namespaces/{namespace}/{names[0]}/{options.name}")
