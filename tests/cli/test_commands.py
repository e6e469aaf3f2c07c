"""The command as a user types it: what it prints where, and how it ends."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest

from autoscaler.__main__ import main as console_script
from autoscaler.cli import explain, main

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "deploy" / "examples"


def python(*words: object, cwd: Path | None = None) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, *map(str, words)],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


def autoscaler(*words: object, cwd: Path | None = None) -> subprocess.CompletedProcess:
    return python("-m", "autoscaler", *words, cwd=cwd)


def test_help_names_every_command_and_is_quick():
    before = time.perf_counter()
    done = autoscaler("--help")
    assert done.returncode == 0
    assert all(f"\n  {command} " in done.stdout for command in ("run", "check", "explain", "top"))
    assert (
        time.perf_counter() - before < 5
    )  # 0.2 s on an idle machine; importing all parts takes 1.5 s of CPU


def test_help_imports_none_of_the_parts():
    script = (
        "import sys; sys.argv = ['autoscaler', '--help']\n"
        "from autoscaler.__main__ import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print(sorted({'numpy', 'aiohttp', 'pydantic', 'rich'} & sys.modules.keys()))"
    )
    done = python("-c", script)
    assert done.stdout.splitlines()[-1] == "[]"


def test_the_version_is_told():
    assert autoscaler("--version").stdout == "autoscaler 0.1.0\n"


def typed(words: list[str], monkeypatch) -> int:
    """Run the command line in this process, and return its exit code."""
    monkeypatch.setattr(sys, "argv", ["autoscaler", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code


@pytest.mark.parametrize(
    "words, said",
    [
        (["nonsense"], "No such command 'nonsense'"),
        (["run"], "Missing option '--config' / '-c'"),
        (
            ["run", "-c", "absent.yaml"],
            "absent.yaml  cannot read the configuration: no such file or directory",
        ),
        (["check", "-c", "."], ".  cannot read the configuration: is a directory; name the YAML file itself"),
        (["explain", "--last", "0"], "Invalid value for '--last'"),
        (["explain", "--url", "http://h", "--history", "f"], "give one of --config, --url and --history"),
        (["explain", "--history", "absent.db"], "absent.db: no such file"),
        (["top", "--url", "here"], "--url here: not a URL; write it as http://127.0.0.1:8082"),
        (["top", "--url", "http://h:99999"], "--url http://h:99999: not a URL"),
        (["explain", "--url", "http://[::1"], "--url http://[::1: not a URL; write it as"),
        (["replay", "f", "--service-time", "soon"], "'--service-time': 'soon': write a time such as 250ms"),
        (["replay", "f", "--service-time", "0s"], "'--service-time': '0s': write between 1ms and 1d"),
        (["replay", "f", "--service-time", "1e-300"], "'1e-300': write between 1ms and 1d"),
        (["replay", "f", "--service-time", "1e300"], "'1e300': write between 1ms and 1d"),
        (["replay", "f", "--cold-start", "1e300"], "'--cold-start': '1e300': write between 0s and 1d"),
        (["replay", "f", "--service-scv", "1e300"], "'--service-scv': '1e300': write between 0 and 100"),
        (["replay", "f", "--service-scv", "nan"], "'nan': write between 0 and 100"),
        (["replay", "f", "--seed", "-1"], "'--seed': '-1': write a whole number between 0 and"),
    ],
)
def test_a_mistake_is_named_on_stderr_and_ends_with_2(words, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert typed(words, monkeypatch) == 2
    printed = capsys.readouterr()
    assert (printed.out, said in printed.err) == ("", True)


def test_ctrl_c_ends_with_130(monkeypatch):
    def interrupted(*given):
        raise KeyboardInterrupt

    monkeypatch.setattr(explain, "explain_decisions", interrupted)
    assert typed(["explain"], monkeypatch) == 130


class Interrupted(ModuleType):
    """A module whose import is cut short by Ctrl-C."""

    def __getattr__(self, name):
        raise KeyboardInterrupt


def test_ctrl_c_while_its_parts_are_imported_ends_quietly(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "autoscaler.cli", Interrupted("autoscaler.cli"))
    with pytest.raises(SystemExit) as ended:
        console_script()
    assert (ended.value.code, capsys.readouterr().err) == (130, "")


@pytest.mark.parametrize("words", [["nonsense"], ["run", "-c", "absent.yaml"]])
def test_a_mistake_ends_the_process_without_a_traceback(words, tmp_path):
    done = autoscaler(*words, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr


TEN_ERLANGS = ("plan", "--arrival-rate", "1/s", "--service-time", "10s")


def test_a_locale_that_lacks_a_sign_gets_another_one():
    done = subprocess.run(
        [sys.executable, "-m", "autoscaler", *TEN_ERLANGS],
        check=False,
        capture_output=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "ascii"},
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"inside the band of 60?75 %" in done.stdout


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("words", [TEN_ERLANGS, ("--help",)])
def test_a_full_disk_is_named_without_a_traceback(words):
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "autoscaler", *words],
            check=False,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
    assert done.returncode == 2
    said = "autoscaler: cannot write: No space left on device; make room where it writes to\n"
    assert done.stderr == said


def test_all_problems_of_a_file_are_told_and_counted(tmp_path):
    (tmp_path / "f.yaml").write_text("mode: atc\nadmim: :1\npools: {}\n")
    done = autoscaler("check", "-c", "f.yaml", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    first, second, third, last = done.stderr.splitlines()
    assert first == 'f.yaml:1:7  mode: got "atc"; allowed: act or recommend; did you mean act?'
    assert second.startswith("f.yaml:2:1  admim: unknown key;")
    assert third.startswith("f.yaml:3:1  pools: got no pool;")
    assert last == "autoscaler: 3 problems in the configuration"


def test_the_problems_of_a_file_can_be_had_as_data(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("f.yaml").write_text("mode: atc\npools: {}\n")
    assert typed(["check", "-c", "f.yaml", "--json"], monkeypatch) == 2
    answer = json.loads(capsys.readouterr().out)
    assert answer["can_run"] is False
    assert [(problem["line"], problem["key"]) for problem in answer["problems"]] == [
        (1, "mode"),
        (2, "pools"),
    ]


def test_what_was_found_can_be_had_as_data(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    pool = 'platform: {kind: local, command: [no-such-program, "{port}"]}'
    Path("f.yaml").write_text(f"listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\npools: {{a: {{{pool}}}}}\n")
    assert typed(["check", "-c", "f.yaml", "--json"], monkeypatch) == 2
    answer = json.loads(capsys.readouterr().out)
    assert answer["can_run"] is False
    assert [found["subject"] for found in answer["findings"] if found["level"] != "ok"] == [
        "pools.a.platform.command"
    ]


def test_logs_that_go_to_no_terminal_are_json_lines():
    script = (
        "import logging, structlog\n"
        "from autoscaler.cli.log_output import configure_logs\n"
        "configure_logs('info')\n"
        "structlog.get_logger().debug('unseen')\n"
        "structlog.get_logger().info('replica is ready', port=7)\n"
        "logging.getLogger('asyncio').warning('slow %s', 'callback')\n"
    )
    done = python("-c", script)
    ours, of_a_library = map(json.loads, done.stderr.splitlines())
    assert (ours["event"], ours["level"], ours["port"]) == ("replica is ready", "info", 7)
    assert (of_a_library["event"], of_a_library["level"]) == ("slow callback", "warning")


@pytest.mark.parametrize("name, warnings", [("static.yaml", 2), ("local.yaml", 0)])
def test_the_examples_pass_the_check(name, warnings, tmp_path):
    # Elsewhere than where they say, so that a program that runs on this machine is not in the way.
    text = (EXAMPLES / name).read_text("utf-8").replace("127.0.0.1:808", "127.0.0.1:0 # 808")
    text = text.replace("127.0.0.1:900", "127.0.0.1:1/")
    text = text.replace("${CONFIG_DIR}", str(EXAMPLES))
    (tmp_path / name).write_text(text)
    done = autoscaler("check", "-c", name, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"can run: 0 problem(s), {warnings} warning(s)" in done.stdout
    assert [path.name for path in tmp_path.iterdir()] == [name]  # nothing was made
