"""`autoscaler explain` reads the history file, and the running program, and says the same of both."""

import asyncio
import json
from pathlib import Path

import pytest

from autoscaler.cli.explain import Source, explain_decisions
from autoscaler.dashboard.admin import AdminSources, start_admin
from autoscaler.domain import Binding, Fleet, Hold, Reason, ScaleTo
from autoscaler.errors import UsageError
from autoscaler.telemetry.history import History
from tests.telemetry.status_examples import a_pool, a_status

FLEET = Fleet(ready=4, starting=0, draining=0, slots_per_replica=2, cold_start_mean=20.0, cold_start_p90=30.0)
UP = ScaleTo(6, 4, Reason.DEMAND_RISES, Binding.WAIT)
HOLD = Hold(6, Reason.WITHIN_BAND, Binding.BAND)
NOWHERE = "http://127.0.0.1:1"


@pytest.fixture
def history(tmp_path):
    with History(tmp_path / "h.db") as history:
        history.record("chat", None, FLEET, UP, 1.0, 1000.0)
        history.record("chat", None, FLEET, HOLD, 2.0, 1010.0)
        history.record("mail", None, FLEET, HOLD, 3.0, 1020.0)
        history.flush()
        yield history


def told(capsys, source: Source, pool: str | None = None, last: int = 20) -> list[str]:
    explain_decisions(source, pool, last, as_json=False)
    return capsys.readouterr().out.splitlines()


def test_decisions_are_told_from_the_file_oldest_first(history, capsys):
    lines = told(capsys, Source(None, history.path, NOWHERE))
    assert [line.split("  ", 1)[1] for line in lines] == [str(UP), str(HOLD), str(HOLD)]
    assert [line.split()[2] for line in lines] == ["chat", "chat", "mail"]


def test_only_the_last_of_one_pool_are_told_if_so_asked(history, capsys):
    (line,) = told(capsys, Source(None, history.path, NOWHERE), pool="chat", last=1)
    assert line.endswith(f"chat  {HOLD}")


def test_a_pool_without_decisions_is_said_to_have_none(history, capsys):
    assert told(capsys, Source(None, history.path, NOWHERE), pool="none") == [
        "No decisions of pool none yet."
    ]


def test_the_configuration_leads_to_the_history(history, tmp_path, capsys):
    config = tmp_path / "f.yaml"
    platform = "platform: {kind: static, urls: [http://127.0.0.1:1]}"
    config.write_text(f"history: {history.path}\npools: {{chat: {{{platform}}}}}\n")
    assert len(told(capsys, Source(config, None, NOWHERE))) == 3
    with pytest.raises(UsageError, match=r"--pool mail: not in .*; there is chat"):
        told(capsys, Source(config, None, NOWHERE), pool="mail")


async def test_the_running_program_tells_the_same_as_the_file(history, capsys):
    sources = AdminSources(
        status=lambda: a_status(a_pool(name="chat")),
        decisions=history.decisions,
        not_ready=list,
        metrics=lambda accept: (b"", ""),
    )
    runner = await start_admin("127.0.0.1", 0, sources)
    url = f"http://127.0.0.1:{runner.addresses[0][1]}/"
    try:
        for as_json in (False, True):
            await asyncio.to_thread(explain_decisions, Source(None, None, url), "chat", 5, as_json)
            live = capsys.readouterr().out
            explain_decisions(Source(None, history.path, NOWHERE), "chat", 5, as_json)
            assert live == capsys.readouterr().out
        assert json.loads(live)[0]["decision"]["kind"] == "scale_to"
        with pytest.raises(UsageError, match="no pool 'embed'; there is chat"):
            await asyncio.to_thread(explain_decisions, Source(None, None, url), "embed", 5, False)
    finally:
        await runner.cleanup()


@pytest.mark.parametrize(
    ("acts", "said"),
    [(None, "decides nothing itself: its controller does. Ask that with --url"), (True, "No decisions yet.")],
)
async def test_a_sidecar_says_who_decides_and_others_that_nothing_is_decided_yet(acts, said, capsys):
    sources = AdminSources(
        status=lambda: a_status(a_pool(acts=acts, last_decision=None)),
        decisions=lambda pool, limit: [],
        not_ready=list,
        metrics=lambda accept: (b"", ""),
    )
    runner = await start_admin("127.0.0.1", 0, sources)
    try:
        source = Source(None, None, f"http://127.0.0.1:{runner.addresses[0][1]}")
        await asyncio.to_thread(explain_decisions, source, None, 5, as_json=False)
    finally:
        await runner.cleanup()
    assert said in capsys.readouterr().out


def test_a_program_that_does_not_answer_is_named():
    with pytest.raises(UsageError, match=r"no answer from http://127\.0\.0\.1:1 .*Is the program running"):
        explain_decisions(Source(None, None, NOWHERE), None, 5, as_json=False)


def test_a_history_that_is_not_there_is_named(tmp_path):
    with pytest.raises(UsageError, match="no such file"):
        explain_decisions(Source(None, Path(tmp_path / "absent.db"), NOWHERE), None, 5, as_json=False)
