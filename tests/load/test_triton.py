"""The real Triton: a round trip with the real model, its times, its end. Skipped where it is not there."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
import zlib
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from load.free_port import free_port
from load.services import lognormal
from load.triton import serve
from load.triton.install import first_answer, is_installed

HOME = Path(__file__).parents[2] / ".triton"
needs_triton = pytest.mark.skipif(
    not is_installed(HOME), reason="Triton is not installed; `make triton` does it"
)


@contextmanager
def a_triton(*options):
    """Yield the process and the address of a server that has answered once."""
    port = free_port()
    command = [
        sys.executable,
        "-m",
        "load.triton",
        "serve",
        "--home",
        str(HOME),
        "--port",
        str(port),
        *options,
    ]
    server = subprocess.Popen(command, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        first_answer(server, port)
        yield server, f"http://127.0.0.1:{port}"
    finally:
        if server.poll() is None:
            os.killpg(server.pid, signal.SIGKILL)
            server.wait()
        serve.remove_regions_of_the_dead()


def embed(url, *texts, request_id="1"):
    tensor = {"name": "TEXT", "shape": [len(texts), 1], "datatype": "BYTES", "data": list(texts)}
    body = json.dumps({"id": request_id, "inputs": [tensor]}).encode()
    with urllib.request.urlopen(f"{url}/v2/models/embed/infer", body, timeout=30) as answer:
        (output,) = json.load(answer)["outputs"]
    return np.array(output["data"]).reshape(output["shape"])


def seconds_of(action):
    began = time.monotonic()
    action()
    return time.monotonic() - began


@needs_triton
def test_a_triton_embeds_sentences_in_the_time_of_the_emulated_accelerator():
    with a_triton("--service-time", "0.3", "--scv", "0.2") as (server, url):
        cat, pet, tax = embed(
            url, "The cat sleeps on the sofa.", "A kitten naps on a couch.", "Tax law changed in May."
        )
        assert np.linalg.norm(cat) == pytest.approx(1.0, abs=1e-5)
        assert cat @ pet > 0.6 > 0.3 > cat @ tax

        for request_id in ("a", "b"):
            drawn = lognormal(0.3, 0.2)(np.random.default_rng(zlib.crc32(f"{request_id}\0x".encode())))
            taken = min(seconds_of(lambda: embed(url, "x", request_id=request_id)) for _ in range(3))  # noqa: B023
            assert drawn <= taken < drawn + 0.2

        server.send_signal(signal.SIGTERM)
        assert server.wait(timeout=15) == 0
        assert not list(serve.SHARED_MEMORY.glob(f"{serve.REGION_PREFIX}{server.pid}-*"))


def test_only_regions_of_servers_that_are_gone_are_removed(tmp_path, monkeypatch):
    monkeypatch.setattr(serve, "SHARED_MEMORY", tmp_path)
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    mine, dead, foreign = (
        tmp_path / name
        for name in (
            f"{serve.REGION_PREFIX}{os.getpid()}-1",
            f"{serve.REGION_PREFIX}{gone.pid}-1",
            "something-else",
        )
    )
    for region in (mine, dead, foreign):
        region.touch()
    serve.remove_regions_of_the_dead()
    assert sorted(tmp_path.iterdir()) == sorted([mine, foreign])


def test_a_model_repository_has_as_many_instances_as_slots(tmp_path):
    repository = serve.model_repository(tmp_path, slots=3)
    assert "count: 3" in (repository / "embed" / "config.pbtxt").read_text()
    compile((repository / "embed" / "1" / "model.py").read_text(), "model.py", "exec")


def run_triton(*arguments):
    command = [sys.executable, "-m", "load.triton", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)


def test_an_installation_that_cannot_be_made_says_why_in_one_line(tmp_path):
    done = run_triton("install", str(tmp_path / "triton"), "--base-python", "no-such-python")
    assert done.returncode == 1
    assert "no-such-python: command not found" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_serving_from_an_empty_folder_tells_what_to_do(tmp_path):
    done = run_triton("serve", "--home", str(tmp_path), "--port", "1")
    assert done.returncode == 1
    assert f"`python -m load.triton install {tmp_path.resolve()}`" in done.stderr
    assert len(done.stderr.splitlines()) == 1
