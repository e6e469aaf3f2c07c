"""What a check finds of platforms whose replicas somebody else starts: all is looked at, nothing is told."""

import socket
import sys
from pathlib import Path

import pytest
import yaml
from kubernetes_asyncio.config import kube_config

from autoscaler.cli.check import probe
from autoscaler.cli.findings import Level
from autoscaler.settings import load
from load.free_port import free_port
from tests.fakes.webhook_receiver import FakeReceiver

PLATFORM = "pools.chat.platform"
PROMETHEUS = {"kind": "prometheus", "url": "http://127.0.0.1:1"}


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


async def found(platform, demand=None, **top):
    pool = {"platform": platform} | ({} if demand is None else {"demand": demand})
    plain = {
        "listen": "127.0.0.1:0",
        "admin": "127.0.0.1:0",
        **top,
        "pools": {"chat": pool},
    }
    Path("f.yaml").write_text(yaml.safe_dump(plain))
    findings = await probe(load(Path("f.yaml"), {}))
    return {finding.subject: (finding.level, finding.text) for finding in findings}


async def test_a_receiver_that_tells_its_fleet_is_good_and_gets_no_event():
    Path("secret").write_text("a secret that is long enough\n")
    async with FakeReceiver() as receiver:
        receiver.fleet = {"ready": ["http://127.0.0.1:1"]}
        given = {"kind": "webhook", "url": receiver.url, "status_url": receiver.status_url}
        findings = await found({**given, "secret_file": "secret"})
    assert findings[f"{PLATFORM}.url"][0] is Level.OK
    assert findings[f"{PLATFORM}.secret_file"] == (Level.OK, "secret holds 1 secret(s)")
    assert findings[f"{PLATFORM}.status_url"] == (Level.OK, f"{given['status_url']} tells 1 replica(s)")
    assert findings["state"][0] is Level.OK
    assert receiver.attempts == []


async def test_a_receiver_that_is_not_there_and_secrets_that_are_none_are_found():
    Path("secret").write_text("short\n")
    url = f"http://127.0.0.1:{free_port()}"
    given = {"kind": "webhook", "url": url, "status_url": url}
    with_ca = {**given, "url": url.replace("http:", "https:"), "ca": "absent.pem"}
    assert (await found(with_ca))[f"{PLATFORM}.ca"][0] is Level.PROBLEM
    findings = await found({**given, "secret_file": "secret"})
    assert findings[f"{PLATFORM}.url"][0] is Level.WARNING
    assert "nobody listens at 127.0.0.1" in findings[f"{PLATFORM}.url"][1]
    assert findings[f"{PLATFORM}.secret_file"][0] is Level.PROBLEM
    assert findings[f"{PLATFORM}.status_url"][0] is Level.WARNING


async def test_events_that_leave_the_machine_unsigned_are_a_warning():
    given = {"kind": "webhook", "url": "http://scaler.invalid/scale", "urls": ["http://127.0.0.1:1"]}
    findings = await found(given)
    assert findings[f"{PLATFORM}.secret_file"][0] is Level.WARNING
    assert "anybody can forge them" in findings[f"{PLATFORM}.secret_file"][1]
    assert findings[f"{PLATFORM}.urls[0]"][0] is Level.WARNING


async def test_commands_are_looked_for_and_only_status_is_run():
    script = "import sys, pathlib; pathlib.Path('ran').touch(); print('{\"ready\": []}')"
    status = [sys.executable, "-c", "print('{\"ready\": []}')"]
    given = {"kind": "exec", "scale": [sys.executable, "-c", script, "{replicas}"], "status": status}
    findings = await found(given)
    assert findings[f"{PLATFORM}.scale"] == (Level.OK, f"{sys.executable} is there; it was not run")
    assert findings[f"{PLATFORM}.status"] == (Level.OK, f"{sys.executable} tells 0 replica(s)")
    assert not Path("ran").exists()
    findings = await found({**given, "scale": ["no-such-program", "{replicas}"]})
    assert findings[f"{PLATFORM}.scale"][0] is Level.PROBLEM
    findings = await found({**given, "status": [sys.executable, "-c", "print(3)"]})
    assert findings[f"{PLATFORM}.status"][0] is Level.WARNING


async def test_kedas_listener_and_the_name_of_the_replicas_are_tried():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        findings = await found({"kind": "keda", "dns": "http://localhost:8000"}, keda={"listen": listen})
    assert findings["keda.listen"][0] is Level.PROBLEM
    level, text = findings[f"{PLATFORM}.dns"]
    assert level is Level.OK
    assert text.startswith("http://localhost:8000 has ")
    assert "keda.listen" not in await found({"kind": "static", "urls": ["http://127.0.0.1:1"]})


async def test_a_cluster_that_is_not_there_is_a_problem():
    given = {"kind": "kubernetes", "name": "chat", "service": "chat", "kubeconfig": "absent"}
    level, text = (await found(given))[f"{PLATFORM}.kubeconfig"]
    assert level is Level.PROBLEM
    assert "absent cannot be used: no such file" in text


async def test_one_missing_cluster_is_one_problem_whoever_needs_it(monkeypatch, tmp_path):
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.setattr(kube_config, "KUBE_CONFIG_DEFAULT_LOCATION", str(tmp_path / "config"))
    given = {"kind": "kubernetes", "name": "chat", "service": "chat"}
    demand = {"kind": "kubernetes", "service": "chat"}
    answer = await found(given, leadership={"lease": "chat"}, demand=demand)
    problems = {subject: text for subject, (level, text) in answer.items() if level is not Level.OK}
    assert list(problems) == [f"{PLATFORM}.kubeconfig"]
    assert problems[f"{PLATFORM}.kubeconfig"].startswith("no cluster found: this is no pod")


async def test_a_proxy_that_is_told_its_replicas_has_no_history():
    assert "history" not in await found({"kind": "controller"})
    assert "history" in await found({"kind": "static", "urls": ["http://127.0.0.1:1"]})


@pytest.mark.parametrize("place", [{"kind": "list", "urls": ["http://127.0.0.1:1"]}, PROMETHEUS])
async def test_a_token_that_is_not_there_is_a_problem_in_plain_words(place, tmp_path):
    demand = {**place, "token_file": "absent"}
    given = {"kind": "keda", "urls": ["http://127.0.0.1:1"]}
    answer = await found(given, demand=demand)
    level, text = answer["pools.chat.demand.token_file"]
    assert level is Level.PROBLEM
    assert text.endswith("absent cannot be read: no such file or directory")
    assert "pools.chat.demand" not in answer
