"""Plays many replays, several at a time where the machine has cores for them; Ctrl-C keeps what is finished.

A replay is seconds to minutes of pure computing, and knows nothing of the others, so each may run in a
process of its own. Small ones are played here: a process takes longer to start than they take. A Ctrl-C in
the terminal reaches the whole group of processes; those that compute do not see it, and are told to stop
through shared memory, where they also write how far they are.
"""

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any

from autoscaler.replay.output.lineup import Contender
from autoscaler.replay.output.play import Played, Stage, play

_POLL = 0.2
"""So often those who wait look how far the replays are [s]."""
_SMALL = 300_000
"""Requests, over all replays, up to which they are played in this process."""

Heard = Callable[[float, str], None]
"""Gets the fraction of everything that is done, in [0, 1], and the name of one who plays."""


@dataclass(frozen=True, slots=True)
class Run:
    """One replay that shall be played."""

    contender: Contender
    seed: int
    clairvoyant_gpu_hours: float


def play_all(stage: Stage, runs: Sequence[Run], heard: Heard) -> list[Played]:
    """Play `runs`; return those that were finished, in their order: all, unless Ctrl-C was pressed."""
    requests = float(stage.scenario.counts.sum()) * len(runs)
    workers = 1 if requests <= _SMALL else min(len(runs), os.cpu_count() or 1)
    return _one_by_one(stage, runs, heard) if workers == 1 else _at_once(stage, runs, workers, heard)


def _one_by_one(stage: Stage, runs: Sequence[Run], heard: Heard) -> list[Played]:
    finished: list[Played] = []
    try:
        for number, run in enumerate(runs):

            def told(share: float, number: int = number, name: str = run.contender.name) -> None:
                heard((number + share) / len(runs), name)

            told(0.0)
            finished.append(play(stage, run.contender, run.seed, run.clairvoyant_gpu_hours, told))
            told(1.0)
    except KeyboardInterrupt:
        pass
    return finished


def _at_once(stage: Stage, runs: Sequence[Run], workers: int, heard: Heard) -> list[Played]:
    context = get_context("forkserver")  # imports everything once, for all of them
    context.set_forkserver_preload([__name__])
    shares = context.Array("d", len(runs) + 1, lock=False)  # the last one says: stop
    with ProcessPoolExecutor(workers, context, _begin, (stage, shares)) as pool:
        with _unseen_interrupts():
            futures = [pool.submit(_play_in_process, number, run) for number, run in enumerate(runs)]
        try:
            for share, name in _progress(futures, runs, shares):
                heard(share, name)
        except KeyboardInterrupt:
            pass
        finally:
            shares[len(runs)] = 1.0
            pool.shutdown(wait=True, cancel_futures=True)
        return [future.result() for future in futures if _is_finished(future)]


def _progress(
    futures: Sequence[Future[Played]], runs: Sequence[Run], shares: Any
) -> Iterator[tuple[float, str]]:
    """Yield how far everything is until everything is done; raises what a replay raised."""
    waiting = set(futures)
    while waiting:
        done, waiting = wait(waiting, _POLL)
        for future in done:
            future.result()
        begun = [
            run
            for run, future, share in zip(runs, futures, shares, strict=False)
            if future in waiting and share > 0
        ]
        yield sum(shares[: len(runs)]) / len(runs), (begun or runs)[-1].contender.name


def _is_finished(future: "Future[Played]") -> bool:
    return future.done() and not future.cancelled() and future.exception() is None


@contextmanager
def _unseen_interrupts() -> Iterator[None]:
    """Hold Ctrl-C back meanwhile; processes started meanwhile never see one."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Stopped(Exception):
    """The one who asked does not want it any more."""


_here: tuple[Stage, Any]
"""In a process that plays: on which stage, and where it says how far it is."""


def _begin(stage: Stage, shares: Any) -> None:
    global _here  # noqa: PLW0603 - an initializer of a process pool can leave its state nowhere else
    _here = stage, shares


def _play_in_process(number: int, run: Run) -> Played:
    stage, shares = _here

    def told(share: float) -> None:
        shares[number] = share
        if shares[len(shares) - 1]:
            raise _Stopped

    told(0.0)
    played = play(stage, run.contender, run.seed, run.clairvoyant_gpu_hours, told)
    shares[number] = 1.0
    return played
