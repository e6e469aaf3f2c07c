"""The examples that ship are right, say all there is to say, and nothing that is not so."""

import re
from pathlib import Path

import pytest
import yaml

from autoscaler.platforms.keda import KedaOptions
from autoscaler.platforms.local_process.options import LocalOptions
from autoscaler.platforms.static import StaticOptions
from autoscaler.settings import load
from autoscaler.settings.document import KeyPath
from autoscaler.settings.schema import FileSection
from autoscaler.settings.schema_platform import LocalPlatform, StaticPlatform
from autoscaler.settings.schema_pool import PoolSection
from autoscaler.settings.section import NAME, all_keys
from autoscaler.settings.yaml_source import read

EXAMPLES = Path(__file__).parents[2] / "deploy" / "examples"
REFERENCE = EXAMPLES / "reference.yaml"
EXPLAINED_ABOVE = ("route: {", "platform: {", "kind: static", "utilization_high:")
"""Keys of the reference whose comment stands with their twin above."""


def key_of(path: KeyPath) -> KeyPath:
    """Return a path in a file as the schema has it: any name for the user's own."""
    above = [("pools",), ("pools", NAME, "queue", "classes"), ("pools", NAME, "signals")]
    key: KeyPath = ()
    for step in path:
        key += (NAME if key in above else step,)
    return key


def test_the_static_example_names_two_servers():
    pool = load(EXAMPLES / "static.yaml").pools["echo"]
    assert pool.platform == StaticOptions(urls=("http://127.0.0.1:9001", "http://127.0.0.1:9002"))


def test_the_local_example_starts_the_echo_server_beside_it():
    platform = load(EXAMPLES / "local.yaml").pools["echo"].platform
    assert isinstance(platform, LocalOptions)
    assert platform.render_command(port=7, gpu="")[1:4] == [str(EXAMPLES / "echo_server.py"), "--port", "7"]
    assert platform.state_dir == Path("autoscaler-local.state/echo")


def test_the_reference_contains_every_key_there_is():
    document = read(REFERENCE, {})
    written = {key_of(path) for path in document.key_places}
    missing = [key for key in all_keys(FileSection) if key not in written]
    assert missing == []


def test_the_reference_shows_the_defaults():
    file = FileSection.model_validate(read(REFERENCE, {}).data)
    pool, static = file.pools["local"], file.pools["static"].platform
    assert isinstance(pool.platform, LocalPlatform)
    assert isinstance(static, StaticPlatform)
    own = {"kind", "command", "urls", "env", "cwd", "gpus"}  # without a default, or none to show
    plain = LocalPlatform(kind="local", command=list(pool.platform.command))
    assert pool.platform.model_dump(exclude=own) == plain.model_dump(exclude=own)
    plain_static = StaticPlatform(kind="static", urls=static.urls)
    assert static == plain_static
    assert pool.model_dump(exclude={"platform"}) == PoolSection(platform=plain).model_dump(
        exclude={"platform"}
    )
    others = {"pools", "state"}
    assert file.model_dump(exclude=others) == FileSection(pools={}).model_dump(exclude=others)


def test_two_gpus_have_room_for_two_replicas_whatever_the_policy_allows():
    pool = load(REFERENCE).pools["local"]
    assert isinstance(pool.platform, LocalOptions)
    assert (len(pool.platform.gpus), pool.policy.replicas_max) == (2, 2)


def test_the_two_halves_of_the_keda_example_agree():
    pool = load(EXAMPLES / "keda.yaml").pools["chat"]
    scaled = yaml.safe_load((EXAMPLES.parent / "keda" / "scaledobject.yaml").read_text("utf-8"))["spec"]
    (trigger,) = scaled["triggers"]
    assert isinstance(pool.platform, KedaOptions)
    assert trigger["metadata"]["pool"] == pool.name
    assert scaled["minReplicaCount"] == pool.policy.replicas_min
    assert scaled["maxReplicaCount"] == pool.policy.replicas_max


def test_the_records_of_local_replicas_stand_beside_the_history(tmp_path):
    file = tmp_path / "f.yaml"
    command = 'platform: {kind: local, command: [serve, "{port}"]}'
    file.write_text(f"history: /data/h.db\npools: {{chat: {{{command}}}}}\n", "utf-8")
    platform = load(file, {}).pools["chat"].platform
    assert isinstance(platform, LocalOptions)
    assert platform.state_dir == Path("/data/h.state/chat")


@pytest.mark.parametrize(
    "name", ["static.yaml", "local.yaml", "keda.yaml", "sidecar.yaml", "controller.yaml", "reference.yaml"]
)
def test_every_key_of_an_example_has_a_comment(name):
    lines = (EXAMPLES / name).read_text("utf-8").splitlines()
    previous, uncommented = "#", []
    for line in filter(str.strip, lines):
        is_value = re.fullmatch(r"\s*[\w-]+: \S.*", line)
        if is_value and not previous.lstrip().startswith("#"):
            uncommented.append(line.strip())
        previous = line
    assert [line for line in uncommented if not line.startswith(EXPLAINED_ABOVE)] == []
