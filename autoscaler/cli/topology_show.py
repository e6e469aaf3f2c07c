"""A machine on the screen: memory nodes, the matrix of paths, and what sits in the wrong place."""

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from autoscaler.topology.cpu_list import format_cpu_list
from autoscaler.topology.link_domain import link_domains
from autoscaler.topology.machine import Link, Machine, Nic, PciPath
from autoscaler.topology.placement import Misplaced
from autoscaler.topology.read_machine import Found

_CHOSEN, _QUIET, _WARNING, _GOOD = "bold", "bright_black", "yellow", "green"
_SELF = "·"
_MEANINGS = {
    "NV#": "so many NVLinks",
    PciPath.INTERNAL.word: "on one board",
    PciPath.SWITCH.word: "through one PCIe switch",
    PciPath.SWITCHES.word: "through several PCIe switches",
    PciPath.HOST_BRIDGE.word: "through the PCIe host bridge of a processor",
    PciPath.NODE.word: "between host bridges of one memory node",
    PciPath.SYSTEM.word: "through the interconnect between memory nodes: slow",
    "?": "nobody tells",
}


def show(out: Console, found: Found, mistakes: Sequence[Misplaced]) -> None:
    """Print everything that was found, warnings last."""
    machine = found.machine
    _say(out, _summary(machine), _CHOSEN)
    for note in machine.notes:
        _say(out, f"  {note}", _WARNING)
    out.print()
    out.print(_nodes(machine))
    shown = _shown_nics(machine)
    if machine.gpus:
        out.print()
        out.print(_gpus(machine))
        out.print()
        out.print(_matrix(machine, shown))
        out.print()
        _say(out, _legend(machine, shown), _QUIET)
        _say(out, _domains(machine))
    elif shown:
        out.print()
        out.print(_nic_table(shown))
    hidden = len(machine.nics) - len(shown)
    if hidden:
        _say(out, f"{_count(hidden, 'network card')} not shown: no link.", _QUIET)
    _say_mistakes(out, found, mistakes)


def _summary(machine: Machine) -> str:
    parts = [
        _count(len(machine.sockets) or 1, "socket"),
        _count(len(machine.nodes), "memory node"),
        _count(len(machine.cpus), "core"),
        _count(len(machine.gpus), "GPU") if machine.gpus else "no GPU",
        _count(len(machine.nics), "network card") if machine.nics else "no network card",
    ]
    return ", ".join(parts)


def _nodes(machine: Machine) -> Table:
    table = _table(
        "node", "cores", "memory", *(f"to {node.number}" for node in machine.nodes[1:] and machine.nodes)
    )
    for node in machine.nodes:
        memory = f"{node.memory / 2**30:.0f} GiB" if node.memory else "?"
        distances = [str(each) for each in node.distances] if len(machine.nodes) > 1 else []
        table.add_row(str(node.number), format_cpu_list(node.cpus) or "none", memory, *distances)
    return table


def _gpus(machine: Machine) -> Table:
    table = _table("GPU", "node", "cores", "address", "what")
    for gpu in machine.gpus:
        what = Text(gpu.fault, _WARNING) if gpu.fault else Text(gpu.name)
        table.add_row(
            str(gpu.index), _node(gpu.node), format_cpu_list(gpu.cpus) or "?", gpu.bus_id or "?", what
        )
    return table


def _matrix(machine: Machine, nics: Sequence[Nic]) -> Table:
    """Put a row for each GPU, and below for each network card, so that many of both fit on a screen."""
    table = _table("", *(f"GPU {gpu.index}" for gpu in machine.gpus), "node")
    for gpu in machine.gpus:
        cells = [
            Text(_SELF, _QUIET) if gpu.index == other.index else _cell(machine.link(gpu.index, other.index))
            for other in machine.gpus
        ]
        table.add_row(Text(f"GPU {gpu.index}", _CHOSEN), *cells, _node(gpu.node))
    for nic in nics:
        cells = [_cell(machine.nic_links.get((gpu.index, nic.name), Link(None))) for gpu in machine.gpus]
        table.add_row(nic.name, *cells, _node(nic.node))
    return table


def _node(number: int | None) -> str:
    return "?" if number is None else str(number)


def _cell(link: Link) -> Text:
    if link.nvlinks:
        return Text(link.word, _GOOD)
    return Text(link.word, _WARNING if link.path is PciPath.SYSTEM else "")


def _legend(machine: Machine, nics: Sequence[Nic]) -> str:
    links = [
        *machine.gpu_links.values(),
        *(machine.nic_links[g.index, n.name] for g in machine.gpus for n in nics),
    ]
    words = {"NV#" if link.nvlinks else link.word for link in links}
    return "; ".join(f"{word} {text}" for word, text in _MEANINGS.items() if word in words)


def _domains(machine: Machine) -> str:
    domains = link_domains(machine)
    if len(machine.gpus) == 1:
        return ""
    if len(domains) == 1:
        return "All GPUs share one link domain."
    sets = "; ".join(format_cpu_list(domain) for domain in domains)
    return f"{len(domains)} link domains: GPU {sets}. A replica with several GPUs belongs into one of them."


def _shown_nics(machine: Machine) -> list[Nic]:
    return [nic for nic in machine.nics if nic.is_up or nic.is_rdma]


def _nic_table(nics: Iterable[Nic]) -> Table:
    table = _table("network card", "node", "address")
    for nic in nics:
        table.add_row(nic.name, _node(nic.node), nic.bus_id)
    return table


def _say_mistakes(out: Console, found: Found, mistakes: Sequence[Misplaced]) -> None:
    if mistakes:
        out.print()
        for each in mistakes:
            _say(out, f"! {each}", _WARNING)
    elif found.processes:
        _say(
            out,
            f"{_count(len(found.processes), 'process', 'processes')} on GPUs; none in a wrong place.",
            _GOOD,
        )
    elif found.machine.gpus:
        _say(out, "No process of this machine computes on a GPU now.", _QUIET)


def _table(*headings: str) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style=_QUIET)
    for heading in headings:
        table.add_column(heading, no_wrap=heading != "what")
    return table


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"


def _say(out: Console, text: str, style: str = "") -> None:
    if text:
        out.print(Text(text, style), soft_wrap=not out.is_terminal)
