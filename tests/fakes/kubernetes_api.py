"""An API server that is strict, and the controllers behind it, as far as a scaler meets them.

It refuses what the real one refuses: unknown tokens, a patch of another kind, a resourceVersion that is not
the newest, fields that there are not (Events are checked against the published schema), a watch from a
version that is forgotten. Its ReplicaSet controller deletes as the real one ranks: pods without a node first,
then those that are not ready, then the cheapest, then the newest.
"""

import asyncio
import itertools
import json
import re
from datetime import UTC, datetime
from typing import Any

import kubernetes_validate
import yaml
from aiohttp import web
from aiohttp.test_utils import TestServer

COST = "controller.kubernetes.io/pod-deletion-cost"
TOKEN = "a-token-that-is-known"
SELECTOR = "app=chat"
SERVICE = "kubernetes.io/service-name=chat"


def rfc3339(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class FakeCluster:
    """One Deployment `chat` (or another kind) in `default`; listens on the loopback within `async with`.

    Pods become ready at `run`, unless `room` (nodes) does not suffice: then they cannot be scheduled.
    """

    def __init__(self, replicas: int = 0, room: int = 1000, kind: str = "Deployment", port: int = 9001):
        self.kind, self.room, self.port = kind, room, port
        self.replicas = replicas
        self.wall_time = 1.75e9
        self.tokens = {TOKEN}
        self.forbidden: set[tuple[str, str]] = set()
        self.denied: set[tuple[str, str]] = set()
        self.away: str | None = None
        self.events: list[dict[str, Any]] = []
        self.asked: list[str] = []
        self.before_patch = lambda: None
        self._version = itertools.count(100)
        self._now = self._scale_version = next(self._version)
        self._serial = itertools.count()
        self.pods: dict[str, dict[str, Any]] = {}
        self.slices: dict[str, dict[str, Any]] = {}
        self.leases: dict[str, dict[str, Any]] = {}
        self._log: list[tuple[int, str, str, dict[str, Any]]] = []
        self._forgotten = 0
        self._breaks = 0
        self.reconcile()

    # -- listening

    async def __aenter__(self) -> "FakeCluster":
        application = web.Application(middlewares=[self._guard])
        add = application.router.add_route
        plural = {"Deployment": "deployments", "StatefulSet": "statefulsets"}[self.kind]
        add("GET", "/apis/apps/v1", self._resources)
        add("GET", "/apis/discovery.k8s.io", self._versions)
        scale = f"/apis/apps/v1/namespaces/default/{plural}/chat/scale"
        add("GET", scale, self._get_scale)
        add("PATCH", scale, self._patch_scale)
        add("GET", "/api/v1/namespaces/default/pods", self._pods)
        add("PATCH", "/api/v1/namespaces/default/pods/{name}", self._patch_pod)
        add("GET", "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", self._slices)
        add("POST", "/apis/events.k8s.io/v1/namespaces/default/events", self._post_event)
        leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
        add("POST", leases, self._post_lease)
        add("GET", leases + "/{name}", self._get_lease)
        add("PATCH", leases + "/{name}", self._patch_lease)
        add("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", self._review)
        self._server = TestServer(application, host="127.0.0.1")
        await self._server.start_server()
        return self

    async def __aexit__(self, *exception) -> None:
        self.break_watches()
        await self._server.close()

    def kubeconfig(self, folder, **user) -> Any:
        """Write a file that leads here."""
        file = folder / "kubeconfig"
        plain = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "here",
            "clusters": [{"name": "here", "cluster": {"server": str(self._server.make_url("/"))}}],
            "users": [{"name": "us", "user": user or {"token": TOKEN}}],
            "contexts": [{"name": "here", "context": {"cluster": "here", "user": "us"}}],
        }
        file.write_text(yaml.safe_dump(plain))
        return file

    # -- what the test does

    def run(self, count: int | None = None) -> None:
        """Let pods that have a node get ready: the first `count`, or all."""
        waiting = [pod for pod in self._live() if pod["spec"].get("nodeName") and not is_ready(pod)]
        for pod in waiting[:count]:
            pod["status"]["phase"] = "Running"
            pod["status"]["conditions"].append({"type": "Ready", "status": "True"})
            self._put("pods", "MODIFIED", pod)
        self._list_endpoints()

    def end_terminating(self) -> None:
        for pod in [pod for pod in self.pods.values() if "deletionTimestamp" in pod["metadata"]]:
            del self.pods[pod["metadata"]["uid"]]
            self._put("pods", "DELETED", pod)
        self._list_endpoints()

    def scale_by_hand(self, replicas: int) -> None:
        self.replicas = replicas
        self._scale_version = next(self._version)
        self.reconcile()

    def forget_versions(self) -> None:
        """Compact the history: watches from an older version get 410."""
        self._log.clear()
        self._forgotten = self._now

    def break_watches(self) -> None:
        self._breaks += 1

    def ready_names(self) -> list[str]:
        return sorted(pod["metadata"]["name"] for pod in self._live() if is_ready(pod))

    def uid(self, name: str) -> str:
        return next(uid for uid, pod in self.pods.items() if pod["metadata"]["name"] == name)

    # -- controllers

    def reconcile(self) -> None:
        """Make and delete pods, find them nodes, and list their endpoints."""
        for _ in range(self.replicas - len(self._live())):
            self._make_pod()
        while len(self._live()) > self.replicas:
            pod = min(self._live(), key=self._rank)
            pod["metadata"]["deletionTimestamp"] = rfc3339(self.wall_time)
            self._put("pods", "MODIFIED", pod)
        self._schedule()
        self._list_endpoints()

    def _make_pod(self) -> None:
        taken = {pod["metadata"]["name"] for pod in self.pods.values()}
        number = next(n for n in itertools.count() if f"chat-{n}" not in taken)
        uid = f"uid-{next(self._serial)}"
        owner = "ReplicaSet" if self.kind == "Deployment" else self.kind
        self.pods[uid] = {
            "metadata": {
                "uid": uid,
                "name": f"chat-{number}",
                "namespace": "default",
                "labels": {"app": "chat"},
                "creationTimestamp": rfc3339(self.wall_time),
                "ownerReferences": [{"kind": owner, "name": "chat", "controller": True}],
            },
            "spec": {},
            "status": {"phase": "Pending", "conditions": []},
        }
        self._put("pods", "ADDED", self.pods[uid])

    def _schedule(self) -> None:
        for pod in self._live():
            placed = sum(1 for each in self.pods.values() if each["spec"].get("nodeName"))
            if pod["spec"].get("nodeName"):
                continue
            conditions = pod["status"]["conditions"]
            if placed < self.room:
                pod["spec"]["nodeName"] = "node-0"
                conditions[:] = [{"type": "PodScheduled", "status": "True"}]
            elif not conditions:
                conditions.append(
                    {
                        "type": "PodScheduled",
                        "status": "False",
                        "reason": "Unschedulable",
                        "message": "0/1 nodes are available: 1 Insufficient nvidia.com/gpu.",
                        "lastTransitionTime": rfc3339(self.wall_time),
                    }
                )
            else:
                continue
            self._put("pods", "MODIFIED", pod)

    def _rank(self, pod: dict[str, Any]) -> Any:
        if self.kind == "StatefulSet":
            return -int(pod["metadata"]["name"].rpartition("-")[2])
        cost = int(pod["metadata"].get("annotations", {}).get(COST, 0))
        newest_first = -int(pod["metadata"]["uid"].rpartition("-")[2])
        return (bool(pod["spec"].get("nodeName")), is_ready(pod), cost, newest_first)

    def _list_endpoints(self) -> None:
        endpoints = [
            {
                "addresses": ["127.0.0.1"],
                "conditions": {
                    "ready": is_ready(pod) and "deletionTimestamp" not in pod["metadata"],
                    "serving": is_ready(pod),
                    "terminating": "deletionTimestamp" in pod["metadata"],
                },
                "targetRef": {"kind": "Pod", "uid": uid, "name": pod["metadata"]["name"]},
            }
            for uid, pod in self.pods.items()
            if pod["status"]["phase"] == "Running"
        ]
        before = self.slices.get("slice-0")
        if before is not None and before["endpoints"] == endpoints:
            return
        self.slices["slice-0"] = {
            "metadata": {"uid": "slice-0", "name": "chat-abc", "labels": {}},
            "addressType": "IPv4",
            "ports": [{"name": "http", "port": self.port, "protocol": "TCP"}],
            "endpoints": endpoints,
        }
        self._put("slices", "MODIFIED" if before else "ADDED", self.slices["slice-0"])

    def _live(self) -> list[dict[str, Any]]:
        return [pod for pod in self.pods.values() if "deletionTimestamp" not in pod["metadata"]]

    def _put(self, table: str, kind: str, thing: dict[str, Any]) -> None:
        self._now = next(self._version)
        thing["metadata"]["resourceVersion"] = str(self._now)
        self._log.append((self._now, table, kind, json.loads(json.dumps(thing))))

    # -- the API

    @web.middleware
    async def _guard(self, request: web.Request, handler) -> web.StreamResponse:
        resource = request.path.rpartition("/")[2]
        self.asked.append(f"{request.method} {resource}")
        if self.away == "hang":
            await asyncio.sleep(3600)
        if self.away is not None:
            return refusal(int(self.away), "the test took the server away")
        if request.headers.get("Authorization", "").removeprefix("Bearer ") not in self.tokens:
            return refusal(401, "Unauthorized")
        if (request.method, resource) in self.forbidden:
            return refusal(403, f"cannot {request.method} resource {resource}")
        return await handler(request)

    async def _resources(self, request: web.Request) -> web.Response:
        names = {"Deployment": "deployments", "StatefulSet": "statefulsets"}
        found = [{"name": name, "kind": kind} for kind, name in names.items()]
        found += [{"name": f"{name}/scale", "kind": "Scale"} for name in names.values()]
        return web.json_response({"resources": [*found, {"name": "daemonsets", "kind": "DaemonSet"}]})

    async def _versions(self, request: web.Request) -> web.Response:
        return web.json_response({"versions": [{"version": "v1"}]})

    async def _review(self, request: web.Request) -> web.Response:
        review = await request.json()
        kubernetes_validate.validate(review, "1.37", strict=True)
        asked = review["spec"]["resourceAttributes"]
        what = "/".join(filter(None, (asked["resource"], asked.get("subresource"))))
        allowed = (asked["verb"], what) not in self.denied
        return web.json_response({**review, "status": {"allowed": allowed}}, status=201)

    def _scale(self) -> dict[str, Any]:
        return {
            "kind": "Scale",
            "apiVersion": "autoscaling/v1",
            "metadata": {"name": "chat", "uid": "uid-chat", "resourceVersion": str(self._scale_version)},
            "spec": {"replicas": self.replicas} if self.replicas else {},
            "status": {"replicas": len(self._live()), "selector": SELECTOR},
        }

    async def _get_scale(self, request: web.Request) -> web.Response:
        return web.json_response(self._scale())

    async def _patch_scale(self, request: web.Request) -> web.Response:
        if request.content_type != "application/merge-patch+json":
            return refusal(415, "the body of the request was in an unknown format")
        self.before_patch()
        change = await request.json()
        if change.keys() - {"metadata", "spec"} or change["spec"].keys() != {"replicas"}:
            return refusal(422, "unknown field")
        replicas = change["spec"]["replicas"]
        if type(replicas) is not int or replicas < 0:
            return refusal(422, "spec.replicas: Invalid value")
        if change["metadata"].get("resourceVersion", str(self._scale_version)) != str(self._scale_version):
            return refusal(
                409, "the object has been modified; please apply your changes to the latest version"
            )
        self.scale_by_hand(replicas)
        return web.json_response(self._scale())

    async def _patch_pod(self, request: web.Request) -> web.Response:
        if request.content_type != "application/merge-patch+json":
            return refusal(415, "the body of the request was in an unknown format")
        pod = next((p for p in self._live() if p["metadata"]["name"] == request.match_info["name"]), None)
        if pod is None:
            return refusal(404, "pod not found")
        change = await request.json()
        assert change.keys() == {"metadata"} and change["metadata"].keys() == {"annotations"}
        annotations = pod["metadata"].setdefault("annotations", {})
        for key, value in change["metadata"]["annotations"].items():
            assert value is None or isinstance(value, str), "annotations are text"
            if value is None:
                annotations.pop(key, None)
            else:
                annotations[key] = value
        self._put("pods", "MODIFIED", pod)
        return web.json_response(pod)

    async def _post_event(self, request: web.Request) -> web.Response:
        event = await request.json()
        try:
            kubernetes_validate.validate(event, "1.37", strict=True)
        except kubernetes_validate.ValidationError as error:
            return refusal(422, str(error.message))
        generated = event["metadata"].get("generateName", "")
        if not re.fullmatch(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?-", generated):
            return refusal(422, f"metadata.generateName: Invalid value: {generated}")
        needed = ("eventTime", "reportingController", "reportingInstance", "action", "reason", "note")
        if any(not event.get(key) for key in needed) or len(event["note"]) > 1024:
            return refusal(422, f"an event needs {needed}, and a note of 1024 characters at most")
        self.events.append(event)
        return web.json_response(event, status=201)

    async def _post_lease(self, request: web.Request) -> web.Response:
        lease = await request.json()
        name = lease["metadata"]["name"]
        if name in self.leases:
            return refusal(409, f'leases.coordination.k8s.io "{name}" already exists')
        return self._keep_lease(name, lease, status=201)

    async def _get_lease(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        if name not in self.leases:
            return refusal(404, f'leases.coordination.k8s.io "{name}" not found')
        return web.json_response(self.leases[name])

    async def _patch_lease(self, request: web.Request) -> web.Response:
        if request.content_type != "application/merge-patch+json":
            return refusal(415, "the body of the request was in an unknown format")
        name, change = request.match_info["name"], await request.json()
        if name not in self.leases:
            return refusal(404, f'leases.coordination.k8s.io "{name}" not found')
        lease = self.leases[name]
        if change["metadata"].get("resourceVersion") not in (None, lease["metadata"]["resourceVersion"]):
            return refusal(
                409, "the object has been modified; please apply your changes to the latest version"
            )
        return self._keep_lease(name, {**lease, "spec": {**lease["spec"], **change["spec"]}})

    def _keep_lease(self, name: str, lease: dict[str, Any], status: int = 200) -> web.Response:
        try:
            kubernetes_validate.validate(lease, "1.37", strict=True)
        except kubernetes_validate.ValidationError as error:
            return refusal(422, str(error.message))
        if lease["spec"]["leaseDurationSeconds"] <= 0 or lease["spec"].get("leaseTransitions", 0) < 0:
            return refusal(422, "spec.leaseDurationSeconds: must be greater than 0")
        for time in ("acquireTime", "renewTime"):
            if not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", lease["spec"].get(time, "")):
                return refusal(400, f"spec.{time}: no MicroTime")
        metadata = {**lease["metadata"], "resourceVersion": str(next(self._version)), "uid": f"uid-{name}"}
        self.leases[name] = {**lease, "metadata": metadata}
        return web.json_response(self.leases[name], status=status)

    async def _pods(self, request: web.Request) -> web.StreamResponse:
        return await self._serve(request, "pods", self.pods, SELECTOR)

    async def _slices(self, request: web.Request) -> web.StreamResponse:
        return await self._serve(request, "slices", self.slices, SERVICE)

    async def _serve(self, request, table, things, selector) -> web.StreamResponse:
        if request.query.get("labelSelector") != selector:
            return refusal(400, f"expected labelSelector {selector}, got {request.query_string}")
        if request.query.get("watch") == "true":
            return await self._watch(request, table)
        listed = {"metadata": {"resourceVersion": str(self._now)}, "items": list(things.values())}
        return web.json_response(listed)

    async def _watch(self, request: web.Request, table: str) -> web.StreamResponse:
        version = int(request.query["resourceVersion"])
        answer = web.StreamResponse()
        await answer.prepare(request)
        if version < self._forgotten:
            status = {
                "kind": "Status",
                "code": 410,
                "reason": "Expired",
                "message": "too old resource version",
            }
            await answer.write(json.dumps({"type": "ERROR", "object": status}).encode() + b"\n")
            return answer
        breaks = self._breaks
        while self.away is None and breaks == self._breaks:
            for at, of, kind, thing in [each for each in self._log if each[0] > version]:
                version = at
                if of == table:
                    await answer.write(json.dumps({"type": kind, "object": thing}).encode() + b"\n")
            await asyncio.sleep(0.002)
        if request.transport is not None:
            request.transport.abort()
        return answer


def is_ready(pod: dict[str, Any]) -> bool:
    return any(each["type"] == "Ready" and each["status"] == "True" for each in pod["status"]["conditions"])


def refusal(status: int, message: str) -> web.Response:
    plain = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": status, "message": message}
    return web.json_response(plain, status=status)
