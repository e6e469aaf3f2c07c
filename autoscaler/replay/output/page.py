"""The report as one page that needs no network: verdict, costs, what happened when, what to configure.

Whoever pays reads the first screen; whoever operates reads on.
"""

from collections.abc import Iterable
from pathlib import Path

from autoscaler.replay.output.advice import advice
from autoscaler.replay.output.configuration import as_yaml, forecast_told, settings_for
from autoscaler.replay.output.page_charts import sweep_chart, time_chart
from autoscaler.replay.output.page_style import PAGE, SCRIPT, STYLE, said
from autoscaler.replay.output.page_table import table, tiles
from autoscaler.replay.output.standing import Outcome
from autoscaler.replay.output.traffic_told import Told, circumstances
from autoscaler.replay.output.verdict import verdict

_LEFT_OUT = (
    "Networks, retries and clients that give up are not simulated: whoever waits, waits on.",
    "How long a request takes in a slot is drawn at random by the law above, whatever the request asks "
    "for; unless batching was asked for, it does not depend on how full its replica is.",
    "The other policies are restated from what is published of them, with their usual delays and defaults; a "
    "cluster adds delays of its own.",
    "What a fleet could have cost in hindsight is told by those who know the traffic; tomorrow's is another.",
)
_CHART_NOTE = "A click on a name shows or hides it; drag to zoom in, double-click to return."
_SWEEP_NOTE = (
    "Left is good, low is cheap; what lies in the green area meets the objective. Nobody knows beforehand "
    "which target that will take."
)


def page_of(outcome: Outcome, told: Told) -> str:
    """Return the page."""
    head, *more = verdict(outcome)
    parts = [
        f"<p class='quiet small'>Replay of {said(told.name)} ({said(told.form)})</p>",
        f"<h1>{said(head)}</h1>",
        _list(more),
        tiles(outcome, outcome.own) if outcome.own else "",
        _section("What each would have cost, and missed", table(outcome)),
        _section("What happened when", time_chart(outcome, told) + _quiet(_CHART_NOTE)),
    ]
    if outcome.tuned:
        parts.append(_section("Every target that was tried", sweep_chart(outcome) + _quiet(_SWEEP_NOTE)))
    if outcome.own is not None:
        parts.append(_section("Configuration for this traffic", _configuration(outcome, told)))
    parts.append(_section("What was replayed", _list(circumstances(outcome, told))))
    parts.append(_section("What a replay leaves out", _list(_LEFT_OUT)))
    return PAGE.format(
        title=said(f"Replay of {told.name}"), style=STYLE, parts="\n".join(parts), script=SCRIPT
    )


def write_page(outcome: Outcome, told: Told, path: Path) -> None:
    """Write the page into `path`."""
    path.write_text(page_of(outcome, told), "utf-8")


def _configuration(outcome: Outcome, told: Told) -> str:
    yaml = as_yaml(settings_for(outcome), told.name)
    return (
        f"{_list([*advice(outcome), forecast_told(outcome)])}"
        "<div class='pasted'><button onclick='copied(this)'>Copy</button>"
        f"<pre id='configuration'>{_marked(yaml)}</pre></div>"
    )


def _marked(yaml: str) -> str:
    """Grey what explains."""
    return "\n".join(
        f"<span class='why'>{said(line)}</span>" if line.lstrip().startswith("#") else said(line)
        for line in yaml.splitlines()
    )


def _section(title: str, body: str) -> str:
    return f"<section><h2>{said(title)}</h2>{body}</section>"


def _quiet(note: str) -> str:
    return f"<p class='quiet small'>{said(note)}</p>"


def _list(lines: Iterable[str]) -> str:
    return f"<ul>{''.join(f'<li>{said(line)}</li>' for line in lines)}</ul>"
