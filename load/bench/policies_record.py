"""The runs there are, kept in a file as they come; peers need not run again while ours is worked on."""

import json
from dataclasses import asdict
from pathlib import Path

from autoscaler.replay.report import Report
from load.bench.policies_field import OURS, Contender
from load.bench.policies_run import Result


class Runs:
    """Results by scenario and contender.

    Parameters
    ----------
    known : Path or None
        A file written before; its runs of peers, over as many hours, are taken as they stand.
    file : Path or None
        Where all runs are written, anew after each.
    hours : float
        Replayed of each scenario [h].
    """

    def __init__(self, known: Path | None, file: Path | None, hours: float) -> None:
        self._file, self._hours = file, hours
        self._results: dict[tuple[str, Contender], Result] = {}
        for result in _read(known, hours) if known else []:
            if result.contender.name not in OURS:
                self._results[result.scenario, result.contender] = result

    def get(self, scenario: str, contender: Contender) -> Result | None:
        """Return the run; None if there is none yet."""
        return self._results.get((scenario, contender))

    def add(self, result: Result) -> None:
        """Take in a run, and write all."""
        self._results[result.scenario, result.contender] = result
        if self._file:
            runs = [_row(result) for result in self._results.values()]
            self._file.write_text(
                json.dumps({"hours": self._hours, "runs": runs}, indent=1), encoding="utf-8"
            )


def _row(result: Result) -> dict[str, object]:
    return {
        "scenario": result.scenario,
        "contender": asdict(result.contender),
        "cost": result.cost,
        "meets": result.meets,
        "report": result.report.as_dict(),
    }


def _read(file: Path, hours: float) -> list[Result]:
    data = json.loads(file.read_text(encoding="utf-8"))
    if data["hours"] != hours:
        return []
    return [
        Result(row["scenario"], Contender(**row["contender"]), Report(**row["report"]))
        for row in data["runs"]
    ]
