"""Many replays, several at a time; what is finished survives Ctrl-C."""

import os

import pytest

from autoscaler.replay.output import runs
from autoscaler.replay.output.lineup import contender
from autoscaler.replay.output.play import Stage
from autoscaler.replay.output.runs import Run, play_all
from tests.fakes.replay_outcome import a_scenario

SCENARIO = a_scenario()


def wanted(*sizes: int) -> list[Run]:
    return [Run(contender(SCENARIO, "fixed", float(size)), 0, 1.0) for size in sizes]


def heard_nothing(share, name):
    pass


def test_they_come_back_in_the_order_in_which_they_were_asked_for():
    done = play_all(Stage(SCENARIO), wanted(15, 12, 18), heard_nothing)
    assert [each.contender.name for each in done] == ["fixed 15", "fixed 12", "fixed 18"]


def test_progress_goes_from_nothing_to_all_and_names_who_plays():
    heard = []
    play_all(Stage(SCENARIO), wanted(15, 12), lambda share, name: heard.append((share, name)))
    shares = [share for share, _ in heard]
    assert shares == sorted(shares)
    assert (heard[0], heard[-1]) == ((0.0, "fixed 15"), (1.0, "fixed 12"))


def test_in_processes_of_their_own_they_give_the_same(monkeypatch):
    here = play_all(Stage(SCENARIO), wanted(15, 12), heard_nothing)
    monkeypatch.setattr(runs, "_SMALL", 0)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    heard = []
    apart = play_all(Stage(SCENARIO), wanted(15, 12), lambda share, name: heard.append(share))
    assert [each.report for each in apart] == [each.report for each in here]
    assert heard[-1] == 1.0


@pytest.mark.parametrize("small", [10**9, 0])
def test_ctrl_c_keeps_what_is_finished(small, monkeypatch):
    monkeypatch.setattr(runs, "_SMALL", small)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)

    def interrupt_in_the_second(share, name):
        if share >= 0.34:
            raise KeyboardInterrupt

    many = wanted(15, 12, 18)
    done = play_all(Stage(SCENARIO), many, interrupt_in_the_second)
    assert 1 <= len(done) < 3 or (small == 0 and len(done) <= 3)
    assert all(each.report.requests == 7200 for each in done)


def test_what_breaks_in_a_process_is_heard_here(monkeypatch):
    monkeypatch.setattr(runs, "_SMALL", 0)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    broken = [Run(contender(SCENARIO, "nobody"), 0, 1.0), *wanted(15)]
    with pytest.raises(KeyError, match="nobody"):
        play_all(Stage(SCENARIO), broken, heard_nothing)
