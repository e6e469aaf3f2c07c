"""`autoscaler explain --verify` as a user types it."""

import asyncio
import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner

from autoscaler.cli import explain_verify
from autoscaler.cli.commands import app
from autoscaler.errors import UsageError
from autoscaler.telemetry.history import History
from autoscaler.telemetry.state_codec import compress
from tests.fakes.recorded_pool import a_recorded_history


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    path = tmp_path_factory.mktemp("recorded") / "history.sqlite"
    with History(path) as history:
        asyncio.run(a_recorded_history(history))
    return path


@pytest.fixture
def path(recorded, tmp_path):
    return Path(shutil.copy(recorded, tmp_path / "history.sqlite"))


def verified(*words):
    return CliRunner().invoke(app, ["explain", "--verify", *map(str, words)])


def refused(*words) -> str:
    error = verified(*words).exception
    assert isinstance(error, UsageError)
    return str(error)


def change(path, statement, *arguments):
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement, arguments)


def test_a_history_that_was_left_alone_is_identical_and_the_exit_code_0(path):
    done = verified("--history", path)
    heading, row, remark = done.output.splitlines()
    assert heading.split() == ["pool", "from", "to", "re-executed", "identical", "not", "possible"]
    assert (row.split()[0], row.split()[-3:]) == ("chat", ["200", "200", "0"])
    assert remark == "chat: all 200 re-executed decisions are identical, to the last bit."
    assert done.exit_code == 0


def test_a_narrow_terminal_shows_the_pool_and_the_counts(path, monkeypatch):
    monkeypatch.setattr(explain_verify, "_WIDTH_OF_PIPE", 60)
    heading, row, _ = verified("--history", path).output.splitlines()
    assert heading.split() == ["pool", "re-executed", "identical", "not", "possible"]
    assert row.split() == ["chat", "200", "200", "0"]


def test_a_changed_decision_is_shown_and_the_exit_code_1(path):
    change(
        path, "UPDATE decisions SET decision = json_set(decision, '$.numbers.lead_time', 31.5) WHERE id = 150"
    )
    done = verified("--history", path, "--last", "80")
    assert "1 decision came out otherwise; first at" in done.output
    assert "numbers.lead_time is stored as 31.5, re-executed it is 30.0." in done.output
    assert done.exit_code == 1


def test_programs_are_told_the_same(path):
    change(path, "UPDATE decisions SET decision = json_set(decision, '$.desired', 99) WHERE id = 150")
    done = verified("--history", path, "--json", "--last", "10")
    (pool,) = json.loads(done.stdout)["pools"]
    assert (pool["executed"], pool["identical"], pool["holds"]) == (80, 79, False)
    assert (pool["first_difference"]["field"], pool["first_difference"]["stored"]) == ("desired", 99)
    assert done.exit_code == 1


def test_a_step_that_is_missing_is_told(path):
    change(path, "DELETE FROM decisions WHERE id = 101")
    done = verified("--history", path)
    assert "19 decisions could not be re-executed: a step was not recorded, or was deleted" in done.output
    assert done.exit_code == 1


def test_states_of_another_version_are_said_and_tried(path):
    change(path, "UPDATE controller_states SET version = '0.0.9'")
    done = verified("--history", path, "--last", "1")
    assert "states were written by version 0.0.9, and this is" in done.output
    assert "all 80 re-executed decisions are identical" in done.output
    assert done.exit_code == 0


def test_a_history_without_states_is_refused_with_the_remedy(path):
    change(path, "DROP TABLE controller_states")
    assert "no state of a controller" in refused("--history", path)
    assert "Run this one with it" in refused("--history", path)


def test_a_state_that_would_run_a_command_is_refused(path):
    change(path, "UPDATE controller_states SET state = ?", compress(b"cposix\nsystem\n(S'true'\ntR."))
    assert "names posix.system" in refused("--history", path)


def test_what_cannot_be_asked_is_said(path, tmp_path):
    assert "--history FILE or --config FILE" in refused("--url", "http://127.0.0.1:1")
    assert "--pool mail: no decisions of it in" in refused("--history", path, "--pool", "mail")
    History(tmp_path / "new.sqlite").close()
    assert "no decisions yet" in refused("--history", tmp_path / "new.sqlite")


def test_the_configuration_leads_to_the_history(path, tmp_path):
    config = tmp_path / "f.yaml"
    platform = "platform: {kind: static, urls: [http://127.0.0.1:1]}"
    config.write_text(f"history: {path}\npools: {{chat: {{{platform}}}}}\n")
    assert verified("--config", config, "--pool", "chat", "--last", "1").exit_code == 0
