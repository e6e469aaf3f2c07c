"""The unit for one machine."""

import configparser
import re
import shutil
import subprocess

import pytest

from autoscaler.platforms.local_process.options import LocalOptions
from autoscaler.settings import load
from tests.deploy.manifests import DEPLOY

UNIT = DEPLOY / "systemd" / "inference-autoscaler.service"


@pytest.fixture
def service():
    parser = configparser.ConfigParser(interpolation=None, strict=True, comment_prefixes="#")
    parser.optionxform = str
    parser.read(UNIT, "utf-8")
    return parser["Service"]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_systemd_finds_nothing_wrong(tmp_path):
    unit = tmp_path / UNIT.name
    text, changed = re.subn(
        r"(?m)^ExecStart=\S+", f"ExecStart={shutil.which('true')}", UNIT.read_text("utf-8")
    )
    assert changed == 1
    unit.write_text(text)
    run = subprocess.run(
        ["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, timeout=60, check=False
    )
    assert (run.returncode, run.stderr) == (0, "")


def test_it_starts_the_program_as_a_user_of_its_own(service):
    assert service["ExecStart"].split()[1:] == ["run", "-c", "/etc/autoscaler/autoscaler.yaml"]
    assert service["User"] not in ("root", "0", "nobody")
    assert service["Type"] == "exec"  # it tells nobody when it is ready


def test_replicas_outlive_the_program_unless_it_ends_them(service):
    assert service["KillMode"] == "process"
    # Each of these would take away what a replica that still runs needs.
    assert not {"PrivateTmp", "RemoveIPC"} & set(service)


def test_gpus_stay_reachable(service):
    assert not {"PrivateDevices", "ProtectClock", "DevicePolicy", "MemoryDenyWriteExecute"} & set(service)


def test_it_is_given_longer_than_draining_and_ending_replicas_take(service):
    settings = load(DEPLOY / "examples" / "vllm-8-gpus.yaml", {}, "run")
    platform = settings.pools["chat"].platform
    assert isinstance(platform, LocalOptions)
    takes = settings.proxy.drain_grace + settings.proxy.drain_max + platform.stop_grace
    assert float(service["TimeoutStopSec"]) >= takes + 10


def test_what_cannot_mend_itself_is_not_tried_again(service):
    assert service["Restart"] == "always"
    assert service["RestartPreventExitStatus"] == "2"
