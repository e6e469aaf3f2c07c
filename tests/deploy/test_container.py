"""The file that the image is built from. No engine is at hand to build it, so what can be read off it is."""

import json
import re
import shlex
import subprocess
import sys
import tomllib

import pytest
import yaml

from tests.deploy.manifests import DEPLOY

ROOT = DEPLOY.parent
FILE = DEPLOY / "container" / "Containerfile"
LOCK = (ROOT / "requirements.lock").read_text("utf-8")
LOCK_PART = DEPLOY / "container" / "lock_part.py"


def instructions():
    """Return the instructions as (word, rest), continued lines joined."""
    text = "\n".join(line for line in FILE.read_text("utf-8").splitlines() if not line.startswith("#"))
    joined = re.sub(r"\\\n\s*", "", text)
    return [tuple(line.split(maxsplit=1)) for line in joined.splitlines() if line.strip()]


def all_of(word, lines=None):
    return [rest for name, rest in (lines or instructions()) if name == word]


def last_stage():
    lines = instructions()
    return lines[max(at for at, (word, _) in enumerate(lines) if word == "FROM") :]


def cut(*arguments):
    return subprocess.run(
        [sys.executable, str(LOCK_PART), str(ROOT / "requirements.lock"), *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_base_is_pinned_to_a_patch_release_of_the_python_that_the_project_asks_for():
    (base,) = all_of("ARG")
    assert re.fullmatch(r"PYTHON_IMAGE=python:3\.11\.\d+-slim-\w+", base)
    assert all(image.split()[0] == "${PYTHON_IMAGE}" for image in all_of("FROM"))


def test_what_is_copied_is_there_and_let_through():
    ignored = (FILE.parent / "Containerfile.dockerignore").read_text("utf-8").splitlines()
    allowed = [line[1:] for line in ignored if line.startswith("!")]
    for copied in all_of("COPY"):
        *sources, _ = [word for word in shlex.split(copied) if not word.startswith("--")]
        if "--from=" not in copied:
            for source in sources:
                assert (ROOT / source).exists()
                assert source.rstrip("/") in allowed
    assert "*" in ignored


def test_everything_that_is_installed_has_a_locked_hash():
    installs = [
        run for line in all_of("RUN") for run in line.split("&&") if " install " in run and "pip" in run
    ]
    assert len(installs) == 3
    for install in installs:
        assert "--require-hashes" in install or "--no-index" in install  # the second is our own wheel


def test_the_image_runs_as_a_numbered_user_without_rights():
    (user,) = all_of("USER", last_stage())
    uid, gid = user.split(":")
    assert int(uid) >= 1000
    assert int(gid) >= 1000


def test_one_folder_is_written_to_and_belongs_to_that_user():
    stage = last_stage()
    (volume,) = all_of("VOLUME", stage)
    (user,) = all_of("USER", stage)
    uid, gid = user.split(":")
    assert any(f"install -d -o {uid} -g {gid} {volume}" in run for run in all_of("RUN", stage))
    assert f"HOME={volume}" in " ".join(all_of("ENV", stage))
    assert all_of("WORKDIR", stage) == [volume]


def test_it_says_what_it_is_in_the_version_of_the_project():
    (label,) = all_of("LABEL", last_stage())
    labels = dict(word.removeprefix("org.opencontainers.image.").split("=", 1) for word in shlex.split(label))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert (labels["title"], labels["version"]) == (project["name"], project["version"])
    assert labels["licenses"] == project["license"]
    chart = yaml.safe_load((DEPLOY / "helm" / project["name"] / "Chart.yaml").read_text("utf-8"))
    assert chart["appVersion"] == project["version"]


def test_a_change_of_the_program_installs_its_dependencies_from_the_cache():
    lines = instructions()
    installed = next(at for at, (word, rest) in enumerate(lines) if word == "RUN" and "runtime.lock" in rest)
    before = [rest for word, rest in lines[:installed] if word == "COPY"]
    assert before == ["requirements.lock pyproject.toml deploy/container/lock_part.py ./"]


def test_nothing_to_install_with_is_left():
    stage = last_stage()
    assert any("rm -rf /usr/local/lib/python3.11/site-packages/*" in run for run in all_of("RUN", stage))
    assert all_of("COPY", stage) == ["--from=build /opt/autoscaler /opt/autoscaler"]
    assert "python -m venv --without-pip /opt/autoscaler" in " ".join(all_of("RUN"))


def test_it_runs_the_program_and_asks_the_admin_listener_for_its_health():
    stage = last_stage()
    assert json.loads(all_of("ENTRYPOINT", stage)[0]) == ["autoscaler"]
    assert json.loads(all_of("CMD", stage)[0]) == ["run", "-c", "/etc/autoscaler/autoscaler.yaml"]
    (health,) = all_of("HEALTHCHECK", stage)
    command = json.loads(health.partition(" CMD ")[2])
    assert command[:2] == ["python", "-c"]
    compile(command[2], "health", "exec")
    assert "http://127.0.0.1:8082/healthz" in command[2]


def test_a_part_of_the_lock_is_the_lock_word_for_word():
    made = cut("--named", "NumPy", "aiohttp")
    assert made.returncode == 0
    entries = re.split(r"\n(?=\w)", made.stdout.strip())
    assert {entry.partition("==")[0] for entry in entries} == {"aiohttp", "numpy"}
    assert all(entry in LOCK and "--hash=sha256:" in entry for entry in entries)


def test_what_is_not_locked_is_named():
    made = cut("--named", "leftpad")
    assert made.returncode != 0
    assert "not in the lock: leftpad; lock it first" in made.stderr


@pytest.mark.parametrize("package", ["setuptools"])
def test_what_builds_the_wheel_is_locked(package):
    assert cut("--named", package).returncode == 0
