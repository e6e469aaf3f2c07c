"""The template of a local replica, and what is refused before anything starts."""

from pathlib import Path

import pytest

from autoscaler.platforms.local_process import LocalOptions, command_problems

SERVER = ("server", "--port", "{port}")


def options(command=SERVER, **given):
    return LocalOptions(command=command, state_dir=Path("state"), **given)


def test_only_port_gpu_and_host_are_replaced():
    given = options(("server", "{host}:{port}", '{"gpu": {gpu}}', "{other}"), gpus=("7",))
    assert given.render_command(port=4711, gpu="7") == ["server", "127.0.0.1:4711", '{"gpu": 7}', "{other}"]


def test_the_environment_is_ours_with_the_template_on_top(monkeypatch):
    monkeypatch.setenv("HOME", "/home/ours")
    env = options(gpus=("0", "1"), env={"CUDA_VISIBLE_DEVICES": "{gpu}"}).render_env(port=1, gpu="1")
    assert (env["HOME"], env["CUDA_VISIBLE_DEVICES"]) == ("/home/ours", "1")


def test_gpus_bound_the_fleet():
    with_gpus = options(gpus=("0", "1"), replicas_per_gpu=3, env={"CUDA_VISIBLE_DEVICES": "{gpu}"})
    assert with_gpus.places == 6
    assert options().places is None


def test_the_fingerprint_follows_what_makes_another_process():
    assert options().fingerprint == options(slots_per_replica=4, drain_max=1.0).fingerprint
    others = [options((*SERVER, "-v")), options(env={"A": "1"}), options(cwd=Path("/"))]
    assert len({each.fingerprint for each in [options(), *others]}) == 4


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"command": ()}, "command is empty"),
        ({"command": ("server",)}, "command has no {port}"),
        ({"command": (*SERVER, "{gpu}")}, "gpus is empty"),
        ({"gpus": ("0", "1")}, "add env: {CUDA_VISIBLE_DEVICES"),
        ({"gpus": ("0", "0"), "env": {"G": "{gpu}"}}, "raise replicas_per_gpu"),
        ({"slots_per_replica": 0}, "slots_per_replica >= 1, got 0"),
        ({"ready_timeout": 0.0}, "ready_timeout > 0 s, got 0"),
        ({"stop_grace": -1.0}, "stop_grace >= 0 s, got -1"),
        ({"restart_backoff_initial": 5.0, "restart_backoff_max": 1.0}, "got 1.0 < 5.0 s"),
    ],
)
def test_what_cannot_work_is_refused_with_a_remedy(given, complaint):
    with pytest.raises(ValueError) as refusal:
        options(**given)
    assert complaint in str(refusal.value)


def test_a_command_that_is_not_there_is_a_problem():
    assert command_problems(options(("no-such-server", "{port}"))) == [
        "command: no-such-server was not found or cannot be executed; install it or give its full path"
    ]


def test_a_command_that_is_there_is_none(tmp_path):
    script = tmp_path / "serve.sh"
    script.write_text("#!/bin/sh\n")
    relative = options(("./serve.sh", "{port}"), cwd=tmp_path)
    assert len(command_problems(relative)) == 1  # not executable
    script.chmod(0o755)
    assert command_problems(relative) == []


def test_a_folder_that_is_not_there_is_a_problem(tmp_path):
    problems = command_problems(options(("sh", "{port}"), cwd=tmp_path / "gone"))
    assert problems == [f"cwd: {tmp_path / 'gone'} is not a folder; create it or name another"]
