"""Whether those can be reached who run replicas elsewhere, and whether the replicas answer."""

import asyncio
from pathlib import Path
from urllib.parse import urlsplit

from autoscaler.cli.findings import Finding, Level
from autoscaler.cli.probe_network import accepts, probe_urls
from autoscaler.errors import AutoscalerError, UsageError
from autoscaler.platforms.exec_command import ExecOptions
from autoscaler.platforms.exec_command.options import command_problems
from autoscaler.platforms.exec_command.platform import ask_status
from autoscaler.platforms.webhook import WebhookOptions
from autoscaler.platforms.webhook.receiver import Receiver
from autoscaler.platforms.webhook.signature import read_secrets
from autoscaler.remote_fleet import RemoteFleetOptions
from autoscaler.remote_fleet.dns import look_up
from autoscaler.settings import PoolSettings

_DEFAULT_PORTS = {"http": 80, "https": 443}


async def probe_webhook(pool: PoolSettings, platform: WebhookOptions) -> list[Finding]:
    """Whether somebody listens there, the secrets can be read, and the receiver tells its fleet.

    No event is posted: that would be an order.
    """
    try:
        receiver = Receiver(platform)
    except UsageError as error:
        return [Finding(Level.PROBLEM, _subject(pool, "ca"), str(error))]
    findings = [await _probe_url(_subject(pool, "url"), platform.url)]
    if platform.secret_file is not None:
        findings.append(_probe_secrets(_subject(pool, "secret_file"), platform.secret_file))
    elif urlsplit(platform.url).hostname not in ("127.0.0.1", "localhost", "::1"):
        text = "events are not signed, so anybody can forge them; name a secret_file"
        findings.append(Finding(Level.WARNING, _subject(pool, "secret_file"), text))
    if platform.status_url is not None:
        findings.append(await _probe_status(_subject(pool, "status_url"), platform.status_url, receiver))
    await receiver.close()
    return findings + await probe_fleet(pool, platform.fleet)


async def probe_exec(pool: PoolSettings, platform: ExecOptions) -> list[Finding]:
    """Whether the commands are there, and `status` tells the fleet; `scale` is not run."""
    if problems := command_problems(platform):
        split = (problem.partition(": ") for problem in problems)
        return [Finding(Level.PROBLEM, _subject(pool, key), text) for key, _, text in split]
    subject, findings = _subject(pool, "scale"), []
    findings.append(Finding(Level.OK, subject, f"{platform.scale[0]} is there; it was not run"))
    if platform.status:
        try:
            report = await ask_status(platform, asyncio.Lock())
        except AutoscalerError as error:
            findings.append(Finding(Level.WARNING, _subject(pool, "status"), str(error)))
        else:
            text = f"{platform.status[0]} tells {len(report.members)} replica(s)"
            findings.append(Finding(Level.OK, _subject(pool, "status"), text))
    return findings + await probe_fleet(pool, platform.fleet)


async def probe_fleet(pool: PoolSettings, fleet: RemoteFleetOptions) -> list[Finding]:
    """Whether the replicas that are listed answer; who does not may come later."""
    if fleet.dns is not None:
        return [await _probe_name(_subject(pool, "dns"), fleet.dns)]
    return await probe_urls(pool, fleet.urls)


async def _probe_name(subject: str, url: str) -> Finding:
    found = await look_up(url)
    if found is None:
        return Finding(Level.WARNING, subject, f"{url}: no name server answers; check the network")
    if not found:
        text = f"{url}: the name has no address now; no replica is there, or the name is wrong"
        return Finding(Level.WARNING, subject, text)
    return Finding(Level.OK, subject, f"{url} has {len(found)} address(es)")


async def _probe_url(subject: str, url: str) -> Finding:
    parts = urlsplit(url)
    port = parts.port or _DEFAULT_PORTS[parts.scheme]
    if await accepts(f"{parts.hostname}:{port}"):
        return Finding(Level.OK, subject, f"somebody listens at {parts.hostname}:{port}; nothing was posted")
    text = f"nobody listens at {parts.hostname}:{port}; start the receiver, or mend the URL"
    return Finding(Level.WARNING, subject, text)


def _probe_secrets(subject: str, path: Path) -> Finding:
    try:
        secrets = read_secrets(path)
    except UsageError as error:
        return Finding(Level.PROBLEM, subject, str(error))
    return Finding(Level.OK, subject, f"{path} holds {len(secrets)} secret(s)")


async def _probe_status(subject: str, url: str, receiver: Receiver) -> Finding:
    try:
        report = await receiver.status()
    except AutoscalerError as error:
        return Finding(Level.WARNING, subject, str(error))
    return Finding(Level.OK, subject, f"{url} tells {len(report.members)} replica(s)")


def _subject(pool: PoolSettings, key: str) -> str:
    return f"pools.{pool.name}.platform.{key}"
