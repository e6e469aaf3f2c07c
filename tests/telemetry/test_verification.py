"""What was recorded is decided again, to the last bit; what was changed since, or is missing, is found."""

import asyncio
import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from autoscaler.domain import Reason
from autoscaler.telemetry.history import History
from autoscaler.telemetry.history_reader import HistoryReader
from autoscaler.telemetry.verification import Difference, verify
from forecasting.chosen import Chosen
from tests.fakes.recorded_pool import INTERVAL, RecordedPool, a_recorded_history


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    path = tmp_path_factory.mktemp("recorded") / "history.sqlite"
    with History(path) as history:
        asyncio.run(a_recorded_history(history))
    return path


@pytest.fixture
def path(recorded, tmp_path):
    return Path(shutil.copy(recorded, tmp_path / "history.sqlite"))


def verdict_of(path, **options):
    with HistoryReader(path) as reader:
        return verify(reader, "chat", **options)


def changed(path, statement, *arguments):
    with closing(sqlite3.connect(path)) as connection, connection:
        return connection.execute(statement, arguments).fetchall()


def wall_time_of(path, number):
    ((wall_time,),) = changed(path, "SELECT wall_time FROM decisions WHERE id = ?", number)
    return wall_time


def test_fits_a_lost_interval_and_a_restart_are_re_executed_to_the_last_bit(path):
    verdict = verdict_of(path)
    assert verdict.holds
    assert (verdict.executed, verdict.identical, verdict.before, verdict.unreached) == (200, 200, 0, 0)
    assert (verdict.since_wall, verdict.until_wall) == (wall_time_of(path, 1), wall_time_of(path, 200))


async def test_the_forecaster_of_every_day_is_re_executed_too(tmp_path):
    with History(tmp_path / "h.sqlite") as history:
        pool = RecordedPool(history, forecaster=Chosen(20, horizon=2))
        await pool.start()
        await pool.tick(10)
        history.flush()
        verdict = verify(history, "chat")
    assert (pool.fits, verdict.executed, verdict.identical) == (1, 10, 10)


async def test_a_shortage_and_a_number_set_by_somebody_else_are_re_executed_too(tmp_path):
    with History(tmp_path / "h.sqlite") as history:
        pool = RecordedPool(history)
        pool.platform.room = 3
        await pool.start()
        await pool.tick(60)
        pool.platform.room, pool.platform.edited = 1000, 9
        await pool.tick(1)
        pool.platform.edited = None
        await pool.tick(60)
        history.flush()
        verdict = verify(history, "chat")
        reasons = {record.decision.reason for record in history.decisions("chat", limit=200)}
        edits = [record.decision.numbers.asked_elsewhere for record in history.decisions("chat", limit=200)]
    assert (verdict.executed, verdict.identical) == (121, 121)
    assert Reason.SUPPLY_SHORT in reasons
    assert edits.count(9) == 1


def test_without_the_fits_that_were_adopted_it_comes_out_otherwise(path):
    changed(path, "DELETE FROM controller_states WHERE kind = 'adopted'")
    assert verdict_of(path).identical < 200


def test_one_bit_of_one_number_is_found(path):
    ((text,),) = changed(path, "SELECT decision FROM decisions WHERE id = 150")
    decision = json.loads(text)
    stored = decision["numbers"]["offered_load"]
    decision["numbers"]["offered_load"] = stored * (1 + 2**-52)
    changed(path, "UPDATE decisions SET decision = ? WHERE id = 150", json.dumps(decision))
    verdict = verdict_of(path)
    assert (verdict.holds, verdict.executed, verdict.identical) == (False, 200, 199)
    assert verdict.first_difference == Difference(
        wall_time_of(path, 150), "numbers.offered_load", stored * (1 + 2**-52), stored
    )


def test_another_input_than_the_recorded_one_comes_out_otherwise(path):
    changed(path, "UPDATE decisions SET fleet = json_set(fleet, '$.cold_start_p90', 21.0) WHERE id = 50")
    verdict = verdict_of(path)
    assert not verdict.holds
    assert verdict.first_difference.wall_time == wall_time_of(path, 50)
    assert verdict.identical < 200


def test_a_step_that_was_deleted_is_missed_and_the_next_life_goes_on(path):
    changed(path, "DELETE FROM decisions WHERE id = 101")
    verdict = verdict_of(path)
    assert (verdict.holds, verdict.executed, verdict.identical, verdict.unreached) == (False, 180, 180, 19)
    assert "deleted" in verdict.first_obstacle


def test_the_last_few_are_re_executed_from_the_checkpoint_before_them(path):
    assert verdict_of(path, last=5).executed == 80
    assert verdict_of(path, last=81).executed == 200


def test_what_came_before_the_first_checkpoint_is_counted_and_left(path):
    changed(path, "DELETE FROM controller_states WHERE id = 1")
    verdict = verdict_of(path)
    assert verdict.holds
    assert (verdict.before, verdict.executed, verdict.identical) == (120, 80, 80)


def test_a_state_that_this_version_cannot_read_is_said(path):
    changed(path, "UPDATE controller_states SET state = x'00', version = '9.9' WHERE id = 1")
    verdict = verdict_of(path)
    assert (verdict.executed, verdict.unreached, verdict.versions) == (80, 120, ["9.9"])
    assert not verdict.holds


def test_a_fit_in_the_place_of_a_controller_is_none(path):
    changed(
        path,
        "UPDATE controller_states SET state = (SELECT state FROM controller_states WHERE kind = 'adopted') "
        "WHERE id = 1",
    )
    assert "a Fitted where a Controller should be" in verdict_of(path).first_obstacle


async def test_a_fit_that_is_adopted_while_the_platform_is_asked_counts_for_that_very_step(tmp_path):
    with History(tmp_path / "h.sqlite") as history:
        pool = RecordedPool(history)
        await pool.start()
        await pool.tick(20)
        fleet_of = pool.platform.fleet

        async def asked_for_long():
            await pool.loop._fitting._run_and_adopt(pool.controller._forecast._seasonal.refit_due(1e9))
            return await fleet_of()

        pool.platform.fleet = asked_for_long
        await pool.tick(1)
        pool.platform.fleet = fleet_of
        await pool.tick(20)
    verdict = verdict_of(tmp_path / "h.sqlite")
    assert (verdict.executed, verdict.identical) == (41, 41)


async def test_the_controller_is_kept_once_a_day_and_the_stretches_join(tmp_path, monkeypatch):
    monkeypatch.setattr("autoscaler.control_loop.fitting.CHECKPOINT_INTERVAL", 15 * INTERVAL)
    with History(tmp_path / "h.sqlite") as history:
        pool = RecordedPool(history)
        await pool.start()
        await pool.tick(40)
        history.flush()
        assert [each.decision_id for each in history.checkpoints("chat")] == [1, 16, 31]
        verdict = verify(history, "chat")
    assert (verdict.executed, verdict.identical) == (40, 40)


async def test_a_pool_that_was_kept_beside_others_is_verified_alone(tmp_path):
    with History(tmp_path / "h.sqlite") as history:
        pools = [RecordedPool(history, name) for name in ("chat", "mail")]
        for pool in pools:
            await pool.start()
        for _ in range(30):
            for pool in pools:
                await pool.tick()
        history.flush()
        verdicts = [verify(history, name) for name in history.decided_pools()]
    assert [(each.pool, each.identical) for each in verdicts] == [("chat", 30), ("mail", 30)]
