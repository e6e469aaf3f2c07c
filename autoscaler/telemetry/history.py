"""The history: arrivals per interval, every decision with what it was made from, and who made it.

One writer, many readers. The event loop only puts a finished row into a bounded queue; a thread of
its own commits what has gathered, so a slow disk delays neither a request nor a decision. A kill at
any moment loses what was not yet committed: at most the current interval. If the disk refuses, rows
are kept and tried again; past the bound the newest are dropped, and that is logged, once. A file that
somebody deletes or damages meanwhile is begun anew (`history_held`).
"""

import queue
from contextlib import ExitStack
from pathlib import Path

import structlog

from autoscaler import __version__
from autoscaler.domain import Decision, Fleet, Observation
from autoscaler.scaling import Controller
from autoscaler.scaling.fit import Fitted
from autoscaler.telemetry.decision_codec import DecisionRecord, record_to_row
from autoscaler.telemetry.history_file import ADOPTED, CHECKPOINT
from autoscaler.telemetry.history_held import HeldHistory
from autoscaler.telemetry.history_reader import HistoryReader
from autoscaler.telemetry.history_retention import Retention
from autoscaler.telemetry.history_writer import HistoryWriter, Mark, Record, State, interval_row
from autoscaler.telemetry.state_codec import freeze

_log = structlog.get_logger(__name__)

_QUEUE_BOUND = 4096
"""Records that wait for the disk, at most: more than an hour of ten pools at 10 s."""


class History(HistoryReader):
    """Writes a history, and reads it; implements `ports.DecisionLog` and `ports.ControllerJournal`.

    Raises
    ------
    HistoryLocked
        On construction, if another instance writes to `path`.
    UsageError
        On construction, if `path` cannot be a history; what is there is left as it is.
    """

    def __init__(self, path: Path | str, retention: Retention | None = None) -> None:
        path = Path(path).resolve()
        with ExitStack() as undo:
            self._held = HeldHistory(path)
            undo.callback(self._held.release)
            undo.callback(self._held.close)
            super().__init__(path)
            undo.pop_all()
        self._held.before_change = self._let_go
        self._queue: queue.Queue[Record | State | Mark] = queue.Queue(maxsize=_QUEUE_BOUND)
        self._closed = False
        self._dropping = False
        self._writer = HistoryWriter(self._held, self._queue, retention or Retention(), path)
        self._writer.start()

    def record(
        self,
        pool: str,
        observation: Observation | None,
        fleet: Fleet,
        decision: Decision,
        now: float,
        wall_time: float,
    ) -> None:
        """Keep one step of the control path; returns at once. Raises ValueError after `close`."""
        record = DecisionRecord(pool, float(wall_time), float(now), observation, fleet, decision)
        self._put(Record(record_to_row(record), interval_row(pool, observation)))

    def checkpoint(self, pool: str, controller: Controller, now: float, wall_time: float) -> None:
        """Keep the controller as it is before a step; takes a millisecond. As `record` after `close`."""
        self._put(State(pool, float(wall_time), float(now), CHECKPOINT, __version__, freeze(controller)))

    def adopted(self, pool: str, fitted: Fitted, now: float, wall_time: float) -> None:
        """Keep a fit that is adopted after a step; as `checkpoint`."""
        self._put(State(pool, float(wall_time), float(now), ADOPTED, __version__, freeze(fitted)))

    def _put(self, item: Record | State) -> None:
        if self._closed:
            raise ValueError(f"history {self.path} is closed")
        try:
            self._queue.put_nowait(item)
            self._dropping = False
        except queue.Full:
            if not self._dropping:
                _log.error("history is full of unwritten records; newest are dropped", path=str(self.path))
            self._dropping = True

    def flush(self, timeout: float = 10.0) -> None:
        """Block until all that was recorded so far has been given to the disk, `timeout` [s] at most."""
        mark = Mark()
        try:
            self._queue.put(mark, timeout=timeout)
        except queue.Full:
            return
        mark.done.wait(timeout)

    def close(self) -> None:
        """Write what is left, let go of the file and of its lock. Blocks as `flush` does."""
        if self._closed:
            return
        self._closed = True
        super().close()  # first: the last to close folds the WAL into the file, and a reader cannot
        self._writer.stop()
        self._held.release()

    def _let_go(self) -> None:
        """Read from the file that has the name then, when asked the next time."""
        with self._reading_lock:
            if self._reading is not None and not self._closed:
                self._reading.close()
                self._reading = None
