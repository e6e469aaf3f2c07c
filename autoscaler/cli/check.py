"""`autoscaler check`: is the file right, and would what it names work here and now?"""

import asyncio
import dataclasses
import json
import sys
from pathlib import Path

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from autoscaler.cli.findings import Finding, Level
from autoscaler.cli.probe_access import probe_access
from autoscaler.cli.probe_cluster import Clusters, probe_clusters
from autoscaler.cli.probe_demand import probe_demand
from autoscaler.cli.probe_files import probe_folder, probe_history
from autoscaler.cli.probe_grpc_ports import probe_grpc_ports
from autoscaler.cli.probe_kubernetes import probe_kubernetes
from autoscaler.cli.probe_leadership import probe_leadership
from autoscaler.cli.probe_machine import probe_command, probe_gpus
from autoscaler.cli.probe_network import probe_address, probe_servers
from autoscaler.cli.probe_objective import probe_objective
from autoscaler.cli.probe_remote import probe_exec, probe_fleet, probe_webhook
from autoscaler.errors import SettingsError
from autoscaler.platforms.exec_command import ExecOptions
from autoscaler.platforms.keda import KedaOptions
from autoscaler.platforms.kubernetes import KubernetesOptions
from autoscaler.platforms.local_process.options import LocalOptions
from autoscaler.platforms.static import StaticOptions
from autoscaler.platforms.webhook import WebhookOptions
from autoscaler.settings import PoolSettings, Settings, load
from autoscaler.settings.settings import PlatformOptions
from autoscaler.sharing.told_fleet import ToldOptions
from autoscaler.units import Address

_STYLES = {Level.OK: "green", Level.WARNING: "yellow", Level.PROBLEM: "bold red"}
_WIDTH_OF_PIPE = 160
"""Columns of a table that goes into a file or a pipe, which has no width of its own."""


def check_file(config: Path, as_json: bool) -> bool:
    """Print what was found, and return whether the program could run.

    Raises
    ------
    SettingsError
        If the file is wrong; with `as_json` that is printed as well, and the answer is no.
    """
    try:
        settings = load(config)
        if any(pool.demand is not None for pool in settings.pools.values()):
            settings = load(config, command="controller")
    except SettingsError as error:
        if not as_json:
            raise
        problems = [dataclasses.asdict(problem) for problem in error.problems]
        typer.echo(json.dumps({"can_run": False, "problems": problems, "findings": []}, indent=2))
        return False
    findings = asyncio.run(probe(settings))
    can_run = all(finding.level is not Level.PROBLEM for finding in findings)
    if as_json:
        plain = [dataclasses.asdict(finding) for finding in findings]
        typer.echo(json.dumps({"can_run": can_run, "problems": [], "findings": plain}, indent=2))
    else:
        _print_table(config, findings)
    return can_run


async def probe(settings: Settings) -> list[Finding]:
    """Try everything that the settings name; nothing is left changed by it."""
    findings = [probe_address("admin", settings.admin)]
    if not _is_told(settings):
        findings.append(probe_history(settings.history))
    if not settings.only_decides:
        listen = Address(settings.proxy.host, settings.proxy.port)
        findings.insert(0, probe_address("listen", listen))
    if settings.speaks_grpc and not settings.only_decides:
        findings.insert(1, probe_address("grpc.listen", Address(settings.grpc.host, settings.grpc.port)))
    if settings.speaks_to_keda:
        findings.append(probe_address("keda.listen", Address(settings.keda.host, settings.keda.port)))
    findings += probe_access(settings)
    findings += probe_grpc_ports(settings)
    clusters = await probe_clusters(settings)
    findings += clusters.findings
    if not clusters.lack(settings.leadership):
        findings += await probe_leadership(settings.leadership)
    for pool in settings.pools.values():
        findings += await _probe_pool(pool, settings.history, clusters)
    return findings


def _is_told(settings: Settings) -> bool:
    """Whether a controller decides, so that no history is kept here."""
    return all(isinstance(pool.platform, ToldOptions) for pool in settings.pools.values())


async def _probe_pool(pool: PoolSettings, history: Path, clusters: Clusters) -> list[Finding]:
    findings = []
    if pool.demand is not None and not clusters.lack(pool.demand.place):
        findings.append(await probe_demand(pool, pool.demand))
    if not clusters.lack(pool.platform):
        findings += await _probe_platform(pool, pool.platform)
    if not isinstance(pool.platform, ToldOptions):  # of which nobody knows how many slots there will be
        findings.append(probe_objective(pool, history))
    return findings


async def _probe_platform(pool: PoolSettings, platform: PlatformOptions) -> list[Finding]:
    match platform:
        case StaticOptions():
            return await probe_servers(pool, platform)
        case LocalOptions():
            findings = [*probe_command(pool, platform), *probe_gpus(pool, platform)]
            return [*findings, probe_folder("state", platform.state_dir)]
        case WebhookOptions():
            findings = await probe_webhook(pool, platform)
        case ExecOptions():
            findings = await probe_exec(pool, platform)
        case KedaOptions():
            findings = await probe_fleet(pool, platform.fleet)
        case KubernetesOptions():
            findings = await probe_kubernetes(pool, platform)
        case ToldOptions():
            told = "a controller tells the replicas, by the admin listener"
            return [Finding(Level.OK, f"pools.{pool.name}.platform", told)]
    return [*findings, probe_folder("state", platform.fleet.state_dir)]


def _print_table(config: Path, findings: list[Finding]) -> None:
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")  # the name of a key is what to look for, so none of it is cut off
    table.add_column(overflow="fold")
    for finding in (Finding(Level.OK, str(config), "every value is allowed"), *findings):
        level = Text(finding.level.value, _STYLES[finding.level])
        table.add_row(level, Text(finding.subject), Text(finding.text))
    console = Console(width=None if sys.stdout.isatty() else _WIDTH_OF_PIPE)
    console.print(table)
    counts = {level: sum(finding.level is level for finding in findings) for level in Level}
    verdict = "cannot run" if counts[Level.PROBLEM] else "can run"
    console.print(
        f"\n{verdict}: {counts[Level.PROBLEM]} problem(s), {counts[Level.WARNING]} warning(s)",
        highlight=False,
    )
