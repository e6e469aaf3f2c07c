"""Pauses before a restart, and when a silent replica is given up."""

from autoscaler.platforms.local_process.back_off import BackOff, Silence


def test_the_pause_doubles_up_to_its_limit():
    back_off = BackOff(initial=1.0, maximum=10.0)
    assert [back_off.after_failure(ready_for=0.0) for _ in range(6)] == [1, 2, 4, 8, 10, 10]


def test_failures_are_forgotten_after_a_long_readiness_only():
    back_off = BackOff(initial=1.0, maximum=60.0)
    assert [back_off.after_failure(ready_for) for ready_for in (0.0, 0.0, 59.0)] == [1, 2, 4]
    assert [back_off.after_failure(ready_for) for ready_for in (60.0, 0.0)] == [1, 2]


def test_an_idle_replica_hangs_after_failed_probes_in_a_row():
    silence = Silence(probe_failures=3, hang_timeout=300.0, now=0.0)
    answers = [False, False, True, False, False, False]
    verdicts = [silence.hangs(answered, busy=0, now=5.0 * n) for n, answered in enumerate(answers)]
    assert verdicts == [False, False, False, False, False, True]


def test_a_busy_replica_may_be_silent_as_long_as_it_computes():
    silence = Silence(probe_failures=3, hang_timeout=300.0, now=0.0)
    assert not any(silence.hangs(False, busy=1, now=5.0 * n) for n in range(1, 60))
    assert silence.hangs(False, busy=1, now=300.0)


def test_silence_while_busy_does_not_count_against_a_replica_that_is_idle_again():
    silence = Silence(probe_failures=2, hang_timeout=300.0, now=0.0)
    assert not silence.hangs(False, busy=1, now=5.0)
    assert not silence.hangs(False, busy=0, now=10.0)
    assert silence.hangs(False, busy=0, now=15.0)
