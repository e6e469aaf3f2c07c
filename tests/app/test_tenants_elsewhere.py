"""The file of tenants, read by another process: no change is missed, whatever becomes of that process."""

import asyncio
import sys

import pytest

from autoscaler.app import tenants_elsewhere
from autoscaler.app.tenants_elsewhere import follow_tenants
from autoscaler.proxy.tenants.key import digest_of, new_key
from autoscaler.watched_files import signature


class Gate:
    """Only remembers who is let in."""

    def __init__(self):
        self.book = None

    def replace(self, book):
        self.book = book


@pytest.fixture
async def following(tmp_path, monkeypatch):
    """Begin to follow a file that lets in the owner of a key; `seen` is of the file as it was read before."""
    monkeypatch.setattr(tenants_elsewhere, "INTERVAL", 0.01)
    monkeypatch.setattr(tenants_elsewhere, "_AGAIN_AFTER", 0.02)
    key, path, gate, tasks = new_key(), tmp_path / "tenants.yaml", Gate(), []
    path.write_text(f"tenants: {{acme: {{keys: ['{digest_of(key)}']}}}}")

    def begin(seen):
        tasks.append(asyncio.create_task(follow_tenants(path, ["chat"], gate, seen)))
        return path, key, gate

    yield begin
    for task in tasks:
        assert not task.done(), "it has given up"
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def until_let_in(gate, key):
    async with asyncio.timeout(60):
        while gate.book is None or gate.book.by_key(key) is None:
            await asyncio.sleep(0.01)


async def test_a_change_between_the_first_reading_and_the_start_is_not_missed(following, tmp_path):
    _, key, gate = following(signature([tmp_path / "no such file"]))
    await until_let_in(gate, key)


async def test_what_was_read_already_is_not_read_again(following, tmp_path):
    _, _, gate = following(signature([tmp_path / "tenants.yaml"]))
    await asyncio.sleep(0.2)
    assert gate.book is None


@pytest.mark.parametrize(
    "reader",
    [
        pytest.param("/no/such/python", id="cannot be started"),
        pytest.param("/bin/false", id="ends without a word"),
        pytest.param("/bin/true", id="says nothing"),
    ],
)
async def test_a_process_that_fails_is_run_again_for_the_same_change(following, monkeypatch, capsys, reader):
    real = sys.executable
    monkeypatch.setattr(sys, "executable", reader)
    _, key, gate = following(())
    async with asyncio.timeout(20):
        while "cannot be read now" not in capsys.readouterr().out:
            await asyncio.sleep(0.01)
    assert gate.book is None
    monkeypatch.setattr(sys, "executable", real)
    await until_let_in(gate, key)


async def test_a_process_that_hangs_is_ended_and_run_again(following, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(tenants_elsewhere, "_READS_WITHIN", 0.2)
    hangs, real = tmp_path / "hangs", sys.executable
    hangs.write_text("#!/bin/sh\nexec sleep 60\n")
    hangs.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(hangs))
    _, key, gate = following(())
    async with asyncio.timeout(20):
        while "cannot be read now" not in capsys.readouterr().out:
            await asyncio.sleep(0.01)
    monkeypatch.setattr(sys, "executable", real)
    monkeypatch.setattr(tenants_elsewhere, "_READS_WITHIN", 20.0)
    await until_let_in(gate, key)


async def test_a_file_that_is_wrong_changes_nothing_and_is_read_once(following, tmp_path, capsys):
    path, _, gate = following(signature([tmp_path / "tenants.yaml"]))
    path.write_text("tenants: {acme: {keys: [nonsense]}}")
    said = ""
    async with asyncio.timeout(20):
        while "changed files cannot be used" not in said:
            said += capsys.readouterr().out
            await asyncio.sleep(0.01)
    await asyncio.sleep(0.3)
    assert gate.book is None
    assert "cannot be used" not in capsys.readouterr().out
