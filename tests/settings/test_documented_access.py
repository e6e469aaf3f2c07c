"""The examples in documents about queue, slots, tenants and servers are files that the program takes."""

import hashlib
import re
import subprocess
from pathlib import Path

import pytest

from autoscaler.dispatch.tenant_limits import TenantLimits
from autoscaler.proxy.tenants.key import digest_of
from autoscaler.settings import load, load_tenants

DOCS = Path(__file__).parents[2] / "docs"


def blocks(name: str, language: str = "yaml") -> list[str]:
    text = (DOCS / name).read_text("utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


EXAMPLES = [
    pytest.param(block, id=f"{name} {number}")
    for name in ("grpc.md", "openai.md", "queue.md", "slots.md", "tenants.md", "triton.md")
    for number, block in enumerate(blocks(name))
    if "# tenants.yaml" not in block
]


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_example_is_taken(example, tmp_path):
    file = tmp_path / "f.yaml"
    file.write_text(example)
    assert load(file, {}).pools


def test_the_examples_of_grpc_speak_it(tmp_path):
    for number, example in enumerate(blocks("grpc.md")):
        file = tmp_path / f"{number}.yaml"
        file.write_text(example)
        assert load(file, {}).speaks_grpc


def test_the_file_of_tenants_means_what_is_said_of_it(tmp_path):
    (example,) = (block for block in blocks("tenants.md") if "# tenants.yaml" in block)
    file = tmp_path / "tenants.yaml"
    file.write_text(example)
    book = load_tenants(file, frozenset({"chat"}))
    assert book.by_name("acme").limits == TenantLimits(10.0, 2000.0, 8)
    assert book.by_name("globex").limits == TenantLimits()
    assert book.by_name("else").limits == TenantLimits(request_rate=1.0)


def test_the_documented_way_without_the_command_gives_the_same_digest():
    (script,) = blocks("tenants.md", "sh")
    told = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    key, digest = told.stdout.split()
    assert re.fullmatch(r"iak_[\w-]{43}", key)
    assert digest == digest_of(key) == "sha256:" + hashlib.sha256(key.encode()).hexdigest()
