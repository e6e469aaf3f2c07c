"""A check finds the gRPC port that nobody wrote, where it is the port of something else."""

from pathlib import Path

import pytest

from autoscaler.cli.findings import Level
from autoscaler.cli.probe_grpc_ports import probe_grpc_ports
from autoscaler.settings import load


def warnings(folder: Path, urls: str, *, grpc_port: str = "port+1", **top: str) -> list[str]:
    file = folder / "f.yaml"
    lines = [f"{key}: {value}" for key, value in top.items()]
    pool = f"{{server: {{kind: triton, grpc_port: {grpc_port}}}, platform: {{kind: static, urls: [{urls}]}}}}"
    file.write_text("\n".join([*lines, f"pools: {{embed: {pool}}}"]))
    findings = probe_grpc_ports(load(file, {}))
    assert all(finding.level is Level.WARNING for finding in findings)
    assert all(finding.subject == "pools.embed.server.grpc_port" for finding in findings)
    return [finding.text for finding in findings]


@pytest.mark.parametrize(
    "url, top, where",
    [
        ("http://127.0.0.1:8080", {"listen": "127.0.0.1:9000"}, "127.0.0.1:8081, where grpc.listen is"),
        ("http://localhost:8081", {}, "localhost:8082, where admin is"),
        ("http://127.0.0.1:8079", {"listen": '":8080"'}, "127.0.0.1:8080, where listen is"),
    ],
)
def test_a_server_next_to_a_listener_of_this_program_is_told(tmp_path, url, top, where):
    if "8081" in url:
        top = {"grpc": "{listen: 127.0.0.1:9001}"}
    (text,) = warnings(tmp_path, url, **top)
    assert f"{url} is taken to take gRPC at {where};" in text


def test_two_servers_next_to_each_other_are_told(tmp_path):
    (text,) = warnings(tmp_path, "http://10.0.0.1:8000, http://10.0.0.1:8001")
    assert "10.0.0.1:8001, where pools.embed.platform.urls[1] (http://10.0.0.1:8001) is" in text


@pytest.mark.parametrize(
    "urls, grpc_port",
    [
        ("http://10.0.0.1:8000, http://10.0.0.2:8001", "port+1"),  # two machines
        ("http://10.0.0.1:8080", "port+1"),  # the listener is on this one
        ("http://127.0.0.1:8000, http://127.0.0.1:8001", "none"),
        ("http://127.0.0.1:8000, http://127.0.0.1:8010", "port+1"),
    ],
)
def test_what_does_not_meet_is_not_told(tmp_path, urls, grpc_port):
    assert warnings(tmp_path, urls, grpc_port=grpc_port) == []
