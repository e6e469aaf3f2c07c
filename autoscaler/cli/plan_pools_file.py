"""A file of pools: under `pools:` a name each, and under it the values that the options of `plan` have.

    pools:
      chat:  {arrival_rate: 1/s, service_time: 10s, wait: p99<2s, price: $2.50}
      embed: {arrival_rate: 300/s, batch_alpha: 8ms, batch_beta: 0.4ms, batch_max: 32, wait: p99<50ms}

Read as the configuration file is: `${NAME}`, anchors, every problem at once with its place.
"""

import os
from pathlib import Path
from typing import Any

from autoscaler.cli.plan_values import Wrong, question_of, read_values
from autoscaler.cli.plan_words import READERS
from autoscaler.errors import SettingsError, UsageError
from autoscaler.plan.question import Question
from autoscaler.settings.document import Document, shown
from autoscaler.settings.values import did_you_mean
from autoscaler.settings.yaml_source import read


def read_pools(path: Path, only: str | None) -> dict[str, Question]:
    """Return the question of each pool in `path`, or of the pool `only`.

    Raises
    ------
    SettingsError
        With every problem of the file.
    UsageError
        If there is no pool `only`.
    """
    document = read(path, os.environ)
    pools = document.data.get("pools")
    for key in document.data.keys() - {"pools"}:
        document.note((key,), "unknown key", "pools", did_you_mean(key, ["pools"]) or "remove it")
    if not isinstance(pools, dict) or not pools:
        document.note(("pools",), f"got {shown(pools)}", "a name for each pool, and its values under it")
        pools = {}
    questions = {name: _question(document, str(name), pool) for name, pool in pools.items()}
    if document.problems:
        raise SettingsError(sorted(document.problems, key=lambda problem: (problem.line, problem.column)))
    asked = {name: question for name, question in questions.items() if question is not None}
    if only is None:
        return asked
    if only not in asked:
        raise UsageError(f"--pool {only}: not in {path}; there is {', '.join(asked)}")
    return {only: asked[only]}


def _question(document: Document, name: str, pool: Any) -> Question | None:
    """Return the question of one pool; note what is wrong with it."""
    if not isinstance(pool, dict):
        document.note(("pools", name), f"got {shown(pool)}", "its values, as arrival_rate: 1/s")
        return None
    values: dict[str, Any] = {}
    before = len(document.problems)
    for key, given in pool.items():
        path = ("pools", name, key)
        if key not in READERS:
            place = document.key_places.get(path)
            remedy = did_you_mean(key, READERS) or "remove it"
            document.note(path, "unknown key", ", ".join(READERS), remedy, place)
            continue
        try:
            values |= read_values({key: given})
        except Wrong as wrong:
            document.note(path, f"got {shown(given)}", wrong.remedy)
    if len(document.problems) > before:
        return None
    try:
        return question_of(values)
    except Wrong as wrong:
        got = f"got {shown(wrong.given)}" if wrong.given is not None else ""
        path, remedy = ("pools", name, wrong.name), wrong.remedy
        document.note(path, got or remedy, remedy if got else "")
        return None
