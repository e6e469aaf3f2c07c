"""What is said of a wrong file: every problem at once, each with its place, the value and the remedy."""

import textwrap
from pathlib import Path

import pytest

from autoscaler.errors import SettingsError
from autoscaler.settings import load
from tests.settings.transcript import CASES, TRANSCRIPT

SERVERS = "platform: {kind: static, urls: [http://127.0.0.1:9001]}"


def problems_of(file: Path, environment=None) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        load(file, environment or {})
    return str(caught.value).split("\n")


def test_the_transcript_is_read_whole():
    assert len(CASES) == TRANSCRIPT.count("\n--- ")


@pytest.mark.parametrize("name, file, answer", CASES, ids=[name for name, _, _ in CASES])
def test_a_wrong_file_is_answered_as_in_the_transcript(name, file, answer, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("f.yaml").write_text(file, "utf-8")
    assert problems_of(Path("f.yaml"), {"BAD": "nowhere"}) == [line for line in answer if line]


def test_all_problems_come_at_once_in_the_order_of_their_places(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("f.yaml").write_text(
        textwrap.dedent(f"""\
            mode: atc
            listen: ${{UNSET}}
            pools:
              a:
                scaling: {{replicas_min: 9, replicas_max: 3, replicas_mid: 5}}
                queue: {{requests_max: -1}}
                queue: {{}}
                {SERVERS}
              b:
                slots_per_replica: none
                platform: {{kind: local, env: {{A: 1}}}}
            """)
    )
    with pytest.raises(SettingsError) as caught:
        load(Path("f.yaml"), {})
    assert [(problem.line, problem.key, problem.fault) for problem in caught.value.problems] == [
        (1, "mode", 'got "atc"'),
        (2, "listen", "got ${UNSET}, which is not set in the environment"),
        (5, "pools.a.scaling.replicas_min", "got 9"),
        (5, "pools.a.scaling.replicas_mid", "unknown key"),
        (6, "pools.a.queue.requests_max", "got -1"),
        (7, "pools.a.queue", "given twice, first in line 6"),
        (9, "pools.b.route.prefix", "got /, which pool a has too"),
        (10, "pools.b.slots_per_replica", 'got "none"'),
        (11, "pools.b.platform.command", "missing"),
    ]


def test_each_problem_can_be_read_by_a_program(tmp_path):
    file = tmp_path / "f.yaml"
    file.write_text(f"mode: atc\npools: {{a: {{{SERVERS}}}}}\n")
    with pytest.raises(SettingsError) as caught:
        load(file, {})
    (problem,) = caught.value.problems
    assert (problem.file, problem.line, problem.column, problem.key) == (str(file), 1, 7, "mode")
    assert (problem.fault, problem.allowed, problem.remedy) == (
        'got "atc"',
        "act or recommend",
        "did you mean act?",
    )


def test_a_file_that_cannot_be_read_is_named_with_the_reason(tmp_path):
    absent, folder = tmp_path / "absent.yaml", tmp_path
    assert problems_of(absent) == [
        f"{absent}  cannot read the configuration: no such file or directory; check its name and permissions"
    ]
    assert problems_of(folder) == [
        f"{folder}  cannot read the configuration: is a directory; name the YAML file itself"
    ]


@pytest.mark.parametrize(
    "content, said",
    [
        (b"", "  the file is empty; write `pools:` with one pool at least"),
        (b"a: 1\nname: caf\xe9\n", ":2:10  byte 0xe9 is not UTF-8; save the file as UTF-8"),
        (b"a: \x01", ":1:4  character '\\x01' is not allowed in YAML; remove it"),
        (b"a: " + b"[" * 1500, "  lists or mappings are nested too deep; is it the right file?"),
        (
            b"#" * (2**22 + 1),
            "  the file has 4194305 bytes; allowed: at most 4194304 bytes; is it the right file?",
        ),
    ],
    ids=["empty", "latin-1", "control character", "deep", "huge"],
)
def test_a_file_that_is_no_configuration_is_refused(content, said, tmp_path):
    file = tmp_path / "f.yaml"
    file.write_bytes(content)
    assert problems_of(file) == [f"{file}{said}"]


def test_a_small_file_cannot_become_a_huge_one(tmp_path):
    file = tmp_path / "f.yaml"
    levels = "\n".join(f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]" for n in range(1, 9))
    file.write_text(f"l0: &l0 x\n{levels}\n")
    assert problems_of(file)[-1].endswith("more than 100000 values; use fewer aliases")
