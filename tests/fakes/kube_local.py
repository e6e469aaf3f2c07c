"""A real Kubernetes control plane on loopback: etcd, kube-apiserver, kube-controller-manager, kube-scheduler.

A stand-in kubelet marks scheduled pods Running and Ready after a delay, each with an address of its own.
"""

from __future__ import annotations

import contextlib
import json
import pathlib
import shutil
import ssl
import subprocess
import tempfile
import threading
import time
import urllib.error
import urllib.request

from load.free_port import free_port

TLS = ssl.create_default_context()
TLS.check_hostname, TLS.verify_mode = False, ssl.CERT_NONE  # the server makes its own certificate


def now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


class KubeLocal:
    def __init__(self, bin_dir, controllers=False, nodes=1, gpus=8, pod_delay=0.2, extra_args=()):
        self.bin, self.controllers = pathlib.Path(bin_dir), controllers
        self.nodes, self.gpus, self.pod_delay, self.extra = nodes, gpus, pod_delay, tuple(extra_args)
        self.token, self.user_token = "admin-token", "user-token"  # the second has no rights
        self.procs, self._stop = [], threading.Event()
        self.dir = self.url = self.kubeconfig = self.start_seconds = None

    def _spawn(self, name, *cmd) -> subprocess.Popen:
        log = (self.dir / f"{name}.log").open("wb")
        p = subprocess.Popen(
            [str(c) for c in cmd], stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd=self.dir
        )
        self.procs.append((name, p))
        return p

    def _wait(self, what, check, timeout=60) -> None:
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            for name, p in self.procs:
                if p.poll() is not None:
                    raise RuntimeError(f"{name} exited {p.returncode}:\n{self.log(name)}")
            with contextlib.suppress(OSError, urllib.error.URLError):
                if check():
                    return
            time.sleep(0.05)
        raise TimeoutError(f"{what} not ready after {timeout} s")

    def log(self, name, lines=20) -> str:
        return "\n".join((self.dir / f"{name}.log").read_text(errors="replace").splitlines()[-lines:])

    def call(self, method, path, body=None, kind="application/json", timeout=10):
        data = None if body is None else json.dumps(body).encode()
        req = urllib.request.Request(
            self.url + path,
            data,
            method=method,
            headers={"Authorization": "Bearer " + self.token, "Content-Type": kind},
        )
        with urllib.request.urlopen(req, timeout=timeout, context=TLS) as r:
            return json.load(r)

    def start(self) -> KubeLocal:
        began = time.monotonic()
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="kube-"))
        try:
            self._start()
        except BaseException:
            self.stop()
            raise
        self.start_seconds = time.monotonic() - began
        return self

    def _start(self) -> None:
        subprocess.run(
            ["openssl", "genrsa", "-out", self.dir / "sa.key", "2048"], check=True, capture_output=True
        )
        (self.dir / "tokens.csv").write_text(
            f'{self.token},admin,1,"system:masters"\n{self.user_token},user,2,"users"\n'
        )
        client, peer, port = free_port(), free_port(), free_port()
        etcd = f"http://127.0.0.1:{client}"
        self._spawn(
            "etcd",
            "etcd",
            "--data-dir",
            "etcd",
            "--listen-client-urls",
            etcd,
            "--advertise-client-urls",
            etcd,
            "--listen-peer-urls",
            f"http://127.0.0.1:{peer}",
            "--initial-advertise-peer-urls",
            f"http://127.0.0.1:{peer}",
            "--initial-cluster",
            f"default=http://127.0.0.1:{peer}",
            "--unsafe-no-fsync",
        )
        self._wait("etcd", lambda: urllib.request.urlopen(etcd + "/health", timeout=1).status == 200)
        self.url = f"https://127.0.0.1:{port}"
        self._spawn(
            "kube-apiserver",
            self.bin / "kube-apiserver",
            "--etcd-servers",
            etcd,
            "--bind-address",
            "127.0.0.1",
            "--advertise-address",
            "127.0.0.1",
            "--endpoint-reconciler-type",
            "none",
            "--secure-port",
            port,
            "--cert-dir",
            "certs",
            "--token-auth-file",
            "tokens.csv",
            "--authorization-mode",
            "RBAC",
            "--service-account-issuer",
            "https://local",
            "--service-account-key-file",
            "sa.key",
            "--service-account-signing-key-file",
            "sa.key",
            "--service-cluster-ip-range",
            "10.0.0.0/24",
            "--disable-admission-plugins",
            "ServiceAccount",
            *self.extra,
        )

        def ready() -> bool:
            req = urllib.request.Request(
                self.url + "/readyz", headers={"Authorization": "Bearer " + self.token}
            )
            return urllib.request.urlopen(req, timeout=2, context=TLS).read() == b"ok"

        self._wait("kube-apiserver", ready)
        self._wait("default namespace", lambda: self.call("GET", "/api/v1/namespaces/default"))
        self.kubeconfig = self.dir / "kubeconfig"
        self.kubeconfig.write_text(
            json.dumps(
                {
                    "apiVersion": "v1",
                    "kind": "Config",
                    "current-context": "local",
                    "clusters": [
                        {"name": "local", "cluster": {"server": self.url, "insecure-skip-tls-verify": True}}
                    ],
                    "users": [{"name": "admin", "user": {"token": self.token}}],
                    "contexts": [{"name": "local", "context": {"cluster": "local", "user": "admin"}}],
                }
            )
        )
        if self.controllers:
            common = (
                "--kubeconfig",
                self.kubeconfig,
                "--bind-address",
                "127.0.0.1",
                "--port",
                "0",
                "--leader-elect=false",
            )
            self._spawn(
                "kube-controller-manager",
                self.bin / "kube-controller-manager",
                *common,
                "--secure-port",
                free_port(),
                "--cert-dir",
                "certs-cm",
                "--horizontal-pod-autoscaler-sync-period",
                "2s",
                "--controllers",
                "deployment,replicaset,statefulset,job,garbagecollector,namespace,endpoint,endpointslice,disruption,horizontalpodautoscaling",
            )
            self._spawn(
                "kube-scheduler",
                self.bin / "kube-scheduler",
                *common,
                "--secure-port",
                free_port(),
                "--cert-dir",
                "certs-s",
            )
            for i in range(self.nodes):
                self.add_node(f"node-{i}", self.gpus)
            threading.Thread(target=self._kubelet, daemon=True).start()

    def add_node(self, name, gpus=8, labels=None) -> None:
        room = {"cpu": "64", "memory": "256Gi", "pods": "200", "nvidia.com/gpu": str(gpus)}
        self.call("POST", "/api/v1/nodes", {"metadata": {"name": name, "labels": labels or {}}})
        # Admission taints a new node not-ready; no node lifecycle controller is there to lift that.
        self.call(
            "PATCH", f"/api/v1/nodes/{name}", {"spec": {"taints": None}}, "application/merge-patch+json"
        )
        self.call(
            "PATCH",
            f"/api/v1/nodes/{name}/status",
            {
                "status": {
                    "capacity": room,
                    "allocatable": room,
                    "conditions": [{"type": "Ready", "status": "True", "reason": "Stand-in", "message": ""}],
                }
            },
            "application/merge-patch+json",
        )

    def _kubelet(self) -> None:
        """Poll, rather than watch: at most 50 ms late, and nothing to reconnect."""
        due: dict[str, float] = {}
        while not self._stop.wait(0.05):
            try:
                pods = self.call("GET", "/api/v1/pods?fieldSelector=spec.nodeName!=")["items"]
            except (OSError, ValueError):
                continue
            for pod in pods:
                meta, path = (
                    pod["metadata"],
                    f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}",
                )
                with contextlib.suppress(OSError):
                    if meta.get("deletionTimestamp"):
                        self.call("DELETE", path, {"gracePeriodSeconds": 0})
                    elif pod["status"].get("phase") == "Pending" and time.monotonic() >= due.setdefault(
                        meta["uid"], time.monotonic() + self.pod_delay
                    ):
                        t = now()
                        self.call(
                            "PATCH",
                            path + "/status",
                            {
                                "status": {
                                    "phase": "Running",
                                    "podIP": f"10.1.0.{list(due).index(meta['uid']) % 250 + 1}",
                                    "startTime": t,
                                    "conditions": [
                                        {"type": k, "status": "True", "lastTransitionTime": t}
                                        for k in ("Initialized", "Ready", "ContainersReady", "PodScheduled")
                                    ],
                                    "containerStatuses": [
                                        {
                                            "name": c["name"],
                                            "ready": True,
                                            "restartCount": 0,
                                            "image": c["image"],
                                            "imageID": "",
                                            "state": {"running": {"startedAt": t}},
                                        }
                                        for c in pod["spec"]["containers"]
                                    ],
                                }
                            },
                            "application/merge-patch+json",
                        )

    def stop(self) -> None:
        self._stop.set()
        for _, p in reversed(self.procs):
            if p.poll() is None:
                p.kill()  # the data is thrown away, so nothing needs an orderly end
                p.wait()
        self.procs = []
        if self.dir:
            shutil.rmtree(self.dir, ignore_errors=True)

    __enter__ = start

    def __exit__(self, *exc) -> None:
        self.stop()
