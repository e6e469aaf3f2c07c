"""What a trial is judged by: the sizes that are right, and what must not have been."""

import pytest

from autoscaler.domain import Binding, Hold, Reason
from load.generator import Record
from load.trial.fleet import Asked
from load.trial.plan import Trial
from load.trial.report import ROWS, Decided, Report
from load.trial.troubles import Trouble
from load.trial.watch import Look

TRIAL = Trial(seconds=240.0)
PEAK, END = TRIAL.peak
RIGHT = TRIAL.needed(END)


def answered(at: float) -> Record:
    return Record(at, at, first_byte=at, end=at + 0.1, status=200, queue_time=0.0)


def a_report(**what) -> Report:
    """A run as it should be: what is needed is asked for as soon as it is needed."""
    asked = [Asked(40.0, "one", 4), Asked(55.0, "one", RIGHT), Asked(215.0, "other", 3)]
    given = {
        "records": [answered(at) for at in range(240)],
        "asked": asked,
        "troubles": [Trouble("leader killed", 80.0, 81.0, takeover=1.0)],
        "decided": {},
        **what,
    }

    def desired(at: float) -> int:
        return next((each.desired for each in reversed(given["asked"]) if each.time <= at), 3)

    looks = [
        Look(float(at), desired(at), desired(at), ("one" if at < 80 else "other",), "") for at in range(240)
    ]
    return Report(TRIAL, looks=looks, restarts=1, **given)


def test_the_load_rises_falls_and_needs_more_at_its_peak():
    assert TRIAL.needed(0.0) == TRIAL.needed(TRIAL.seconds) == TRIAL.replicas_min
    assert TRIAL.needed(0.0) < RIGHT <= TRIAL.most(END) <= TRIAL.replicas_max
    arrivals = TRIAL.arrivals()
    assert ((arrivals > PEAK) & (arrivals < END)).sum() == pytest.approx(40.0 * (END - PEAK), rel=0.1)


def test_of_a_run_as_it_should_be_nothing_is_wrong():
    report = a_report()
    assert report.wrongs() == []
    assert (report.lost, report.sent_anew, report.short, report.over) == (0, 0, 0.0, 0.0)
    rows = report.rows()
    assert len(rows) == ROWS
    assert rows[0].desired == (3, 3) and rows[12].desired == rows[12].ready == (RIGHT, RIGHT)
    assert rows[8].leaders == ("other",) and rows[8].troubles == ("leader killed",)


BEFORE = [Asked(40.0, "one", 4), Asked(55.0, "one", RIGHT)]


@pytest.mark.parametrize(
    "what, said",
    [
        ({"records": [answered(1.0), Record(2.0, 2.0, end=3.0, error="reset")]}, "1 requests were lost"),
        ({"records": [Record(2.0, 2.0)]}, "1 requests were lost"),
        ({"troubles": [Trouble("leader killed", 80.0, 99.0, takeover=19.0)]}, "nobody led for 19.0 s"),
        ({"troubles": []}, "who asked changed 1 times (other at 215 s), 0 took over"),
        (
            {"asked": [*BEFORE, Asked(120.0, "one", 3), Asked(121.0, "one", RIGHT)]},
            "at the peak 3 were asked",
        ),
        ({"asked": BEFORE}, f"at the end {RIGHT} replicas were asked for"),
        (
            {
                "asked": [*BEFORE, Asked(180.0, "one", 3)],
                "troubles": [Trouble("Prometheus away", 172.0, 195.0)],
            },
            "in trouble (Prometheus away) 3 were asked for, at 180 s",
        ),
    ],
)
def test_what_must_not_be_is_said(what, said):
    assert any(wrong.startswith(said) for wrong in a_report(**what).wrongs()), a_report(**what).wrongs()


def test_too_few_and_too_many_are_counted_beyond_what_may_lag():
    rises = next(at for at in range(240) if TRIAL.needed(at) > TRIAL.replicas_min)
    late = a_report(asked=[Asked(rises + TRIAL.lag + 30.0, "one", RIGHT), Asked(215.0, "other", 3)])
    assert late.short == pytest.approx(30.0, abs=3.0)
    assert a_report(asked=BEFORE).over > 0


def test_the_longest_hold_is_the_longest_time_without_sight():
    def hold(at: float, reason: Reason) -> Decided:
        return Decided(at, Hold(6, reason, Binding.NONE))

    lost, seen = Reason.METRICS_LOST, Reason.WITHIN_BAND
    kept = [
        hold(0, seen),
        hold(2, lost),
        hold(4, lost),
        hold(6, seen),
        hold(8, lost),
        hold(10, Reason.PARTLY_BLIND),
    ]
    assert a_report(decided={"one": kept, "other": [*kept, hold(15, lost)]}).longest_hold == 7.0
