"""What `check` finds wrong with certificates, tenants and tokens before they break anything."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from autoscaler.cli.commands import app
from autoscaler.cli.findings import Level
from autoscaler.cli.probe_access import probe_access
from autoscaler.proxy.tenants.key import digest_of
from autoscaler.settings import load
from autoscaler.settings.tenants_file import load_tenants
from tests.fakes.certificates import Authority

POOLS = {"chat": {"platform": {"kind": "static", "urls": ["https://127.0.0.1:9001"]}}}


@pytest.fixture
def authority(tmp_path):
    return Authority(tmp_path)


def found(folder, now=None, **settings) -> list[tuple[Level, str, str]]:
    file = folder / "f.yaml"
    file.write_text(yaml.safe_dump({"pools": POOLS, **settings}))
    return [(finding.level, finding.subject, finding.text) for finding in probe_access(load(file, {}), now)]


def tls_of(pair, **more) -> dict[str, str]:
    pair.key.chmod(0o600)
    return {"certificate": str(pair.certificate), "key": str(pair.key), **more}


def test_without_any_of_it_nothing_is_said(tmp_path):
    assert found(tmp_path) == []


def test_a_certificate_that_is_good_for_long_is_fine(tmp_path, authority):
    told = found(tmp_path, tls=tls_of(authority.issues("a", days=90)))
    assert [level for level, _, _ in told] == [Level.OK, Level.OK]


@pytest.mark.parametrize(
    "days, level, said", [(3, Level.WARNING, "2 days; renew it"), (-1, Level.PROBLEM, "was good until")]
)
def test_a_certificate_that_ends_soon_is_a_warning_and_one_that_has_ended_a_problem(
    tmp_path, authority, days, level, said
):
    pair = authority.issues("a", days=30)
    now = datetime.now(UTC) + timedelta(days=30 - days)
    told = found(tmp_path, now, tls=tls_of(pair))
    assert (told[1][0], told[1][1]) == (level, "tls.certificate")
    assert said in told[1][2]


def test_a_certificate_that_is_not_good_yet_is_a_problem(tmp_path, authority):
    told = found(tmp_path, datetime(1999, 1, 1, tzinfo=UTC), tls=tls_of(authority.issues("a")))
    assert told[1][0] is Level.PROBLEM
    assert "is good from" in told[1][2]


def test_files_that_are_absent_or_do_not_belong_together_are_problems(tmp_path, authority):
    pair, other = authority.issues("a"), authority.issues("b")
    absent = {"certificate": str(tmp_path / "absent.crt"), "key": str(pair.key)}
    mixed = {"certificate": str(pair.certificate), "key": str(other.key)}
    for tls, said in ((absent, "cannot be read: no such file"), (mixed, "is not the key of")):
        told = found(tmp_path, tls=tls)
        assert (told[0][0], told[0][1]) == (Level.PROBLEM, "tls")
        assert said in told[0][2]


def test_a_key_that_others_may_read_is_a_warning(tmp_path, authority):
    tls = tls_of(authority.issues("a", days=90))
    Path(tls["key"]).chmod(0o644)
    assert any(
        level is Level.WARNING and subject == "tls.key" and "chmod 600" in text
        for level, subject, text in found(tmp_path, tls=tls)
    )


def test_files_towards_the_servers_are_tried_too(tmp_path):
    pools = {"chat": {**POOLS["chat"], "tls": {"ca": str(tmp_path / "absent.pem")}}}
    assert found(tmp_path, pools=pools)[0][:2] == (Level.PROBLEM, "pools.chat.tls")


def test_the_file_of_tenants_and_the_token_are_tried(tmp_path):
    keys, token = tmp_path / "keys.yaml", tmp_path / "token"
    keys.write_text("tenants: {acme: {pools: [chess]}}")
    token.write_text("short")
    told = found(tmp_path, tenants={"keys_file": str(keys)}, admin_access={"token_file": str(token)})
    problems = {subject: text for level, subject, text in told if level is Level.PROBLEM}
    assert problems.keys() == {"tenants.keys_file", "admin_access.token_file"}
    assert "got chess, which is no pool; allowed: chat" in problems["tenants.keys_file"]


def test_the_key_that_is_made_is_the_one_that_the_file_knows(tmp_path):
    made = CliRunner().invoke(app, ["key", "new", "acme"])
    assert made.exit_code == 0
    key = made.stdout.strip()
    assert made.stderr.rstrip().endswith(f"acme:\n    keys: [{digest_of(key)}]")
    file = tmp_path / "keys.yaml"
    file.write_text(made.stderr[made.stderr.index("tenants:\n") :])
    tenant = load_tenants(file, frozenset()).by_key(key)
    assert tenant is not None
    assert tenant.name == "acme"
