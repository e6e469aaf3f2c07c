"""The first screen of the page: what it comes to, and a table of all policies."""

from autoscaler.replay.output.cells import Cell, cells_of
from autoscaler.replay.output.page_charts import colors_of
from autoscaler.replay.output.page_style import said
from autoscaler.replay.output.standing import BAD_WINDOWS_MAX, Outcome, Standing
from autoscaler.replay.output.verdict import kind_of_fixed, objective
from autoscaler.replay.output.words import hours, multiple, share, span

_MONTH = 30 * 86_400.0
_DAY = 86_400.0
"""From less than that no month is told: a morning is not like a day."""


def tiles(outcome: Outcome, own: Standing) -> str:
    """Return what it comes to, in a few large figures."""
    met, bad = own.mean("objective_met"), own.mean("bad_windows")
    told = [
        _cost(outcome, own),
        *_saved(outcome, own),
        (
            share(met),
            f"in time; wanted: {objective(outcome)}",
            "good" if met >= outcome.objective.wait_quantile else "bad",
        ),
        (
            share(bad),
            f"of 5-minute windows bad; {share(BAD_WINDOWS_MAX)} allowed",
            "good" if bad <= BAD_WINDOWS_MAX else "bad",
        ),
        (
            share(own.mean("utilization")),
            f"busy; in the band {share(own.mean('time_in_band'))} of the time",
            "",
        ),
    ]
    shown = (
        f"<div class='tile'><b class='{kind}'>{said(value)}</b>"
        f"<span class='quiet small'>{said(what)}</span></div>"
        for value, what, kind in told
    )
    return f"<div class='tiles'>{''.join(shown)}</div>"


def table(outcome: Outcome) -> str:
    """Return a row for each policy that is shown, and what the columns mean."""
    shown, colors = outcome.shown, colors_of(outcome)
    headings = ["policy", "objective", *(cell.heading for cell in cells_of(outcome, shown[0]))]
    head = "".join(f"<th>{said(heading)}</th>" for heading in headings)
    most = max(each.mean("gpu_hours") for each in shown)
    rows = "".join(_row(outcome, each, most, colors[each.name]) for each in shown)
    return (
        f"<div class='wide'><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
        f"<p class='quiet small'>{said(_note(outcome))}</p>"
    )


def _cost(outcome: Outcome, own: Standing) -> tuple[str, str, str]:
    gpu_hours, seconds = own.mean("gpu_hours"), outcome.stage.scenario.duration
    what = f"for {span(seconds)}, {multiple(own.multiple.mean)} × the clairvoyant bound"
    if outcome.price is None:
        return f"{hours(gpu_hours)} h", f"of GPUs {what}", ""
    if seconds >= _DAY:
        what += f"; {outcome.price.of(gpu_hours * _MONTH / seconds)} in a month of such days"
    return outcome.price.of(gpu_hours), what, ""


def _saved(outcome: Outcome, own: Standing) -> list[tuple[str, str, str]]:
    """Compare with a fleet for the peak, which is what most people have."""
    fixed = outcome.fixed
    if fixed is None:
        return []
    saved = -own.dearer_than(fixed).mean
    word, kind = ("less", "good") if saved >= 0 else ("more", "bad")
    return [(share(abs(saved)), f"{word} than a {kind_of_fixed(fixed)} ({fixed.name})", kind)]


def _row(outcome: Outcome, each: Standing, most: float, color: str) -> str:
    tuned = "<br><span class='quiet small'>tuned in hindsight</span>" if each.contender.tried else ""
    badge = "<span class='badge good'>met</span>" if each.meets else "<span class='badge bad'>missed</span>"
    first, *rest = cells_of(outcome, each)
    width = 100 * each.mean("gpu_hours") / most if most else 0
    return (
        f"<tr class='{'own' * each.contender.is_own}'>"
        f"<td><span class='dot' style='background:{color}'></span>{said(each.name)}{tuned}</td>"
        f"<td>{badge}</td>"
        f"<td class='cost'>{_text(first)}<span class='bar' style='width:{width:.1f}%'></span></td>"
        f"{''.join(f'<td>{_text(cell)}</td>' for cell in rest)}</tr>"
    )


def _text(cell: Cell) -> str:
    spread = f" <span class='quiet small'>± {said(cell.spread)}</span>" if cell.spread else ""
    text = f"<span class='off'>{said(cell.text)}</span>" if cell.is_off else said(cell.text)
    return text + spread


def _note(outcome: Outcome) -> str:
    bound = outcome.standings[0].mean("clairvoyant_gpu_hours")
    told = (
        f"Objective: {objective(outcome)}, and no more than {share(BAD_WINDOWS_MAX)} of the 5-minute windows "
        "are bad: less than 95 % in time. × bound: times the clairvoyant bound of "
        f"{hours(bound)} GPU-hours, what somebody would pay who knew every arrival and let nobody wait. In "
        "band: windows whose occupancy was inside the band."
    )
    if outcome.seeds > 1:
        told += f" Means of {outcome.seeds} random demands, ± 95 % confidence; the charts show the first."
    return told
