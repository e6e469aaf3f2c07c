"""Whether the sidecars, or proxies, that a controller shall read are found and answer, or the Prometheus."""

import asyncio
from http import HTTPStatus
from urllib.parse import quote

import aiohttp

from autoscaler.app.demand_source import door_finder
from autoscaler.cli.findings import Finding, Level
from autoscaler.clock import SystemClock
from autoscaler.no_answer import why_no_answer
from autoscaler.scaling.doors import Doors
from autoscaler.settings import PoolSettings
from autoscaler.sharing.message import PATH
from autoscaler.telemetry.demand.options import DemandOptions, DoorPlaces, PrometheusDemand
from autoscaler.telemetry.demand.prometheus import PrometheusReader
from autoscaler.telemetry.demand.reader import DoorReader, Finder

_LOOK_AGAIN, _LOOKS = 0.2, 25
"""Nobody can tell who does not within so many looks, so far apart [s]."""


async def probe_demand(pool: PoolSettings, options: DemandOptions) -> Finding:
    """Look for those who measure, and ask each once."""
    subject = f"pools.{pool.name}.demand"
    if unreadable := _unreadable_token(options):
        return Finding(Level.PROBLEM, f"{subject}.token_file", unreadable)
    if isinstance(options.place, PrometheusDemand):
        return await _probe_prometheus(pool.name, options, options.place, subject)
    return await _probe_doors(pool.name, options, options.place, subject)


def _unreadable_token(options: DemandOptions) -> str:
    """Say why the file of the token cannot be read; nothing if it can, or there shall be none."""
    place = options.place
    path = place.token_file if isinstance(place, PrometheusDemand) else options.reader.token_file
    if path is None:
        return ""
    try:
        token = path.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or str(error)
        return f"the token file {path} cannot be read: {why.lower()}"
    return "" if token else f"the token file {path} is empty; write the token into it"


async def _probe_doors(pool: str, options: DemandOptions, place: DoorPlaces, subject: str) -> Finding:
    clock = SystemClock()
    doors, finder = Doors(options.merge, clock.now()), door_finder(place)
    one, many = ("proxy", "proxies") if options.is_shared else ("sidecar", "sidecars")
    try:
        found = await _found(finder)
        if found is None:
            why = finder.trouble or "no answer yet"
            return Finding(Level.WARNING, subject, f"nobody can tell where {many} are: {why}")
        if not found:
            text = f"no {one} is there now; start one, or mend the name"
            return Finding(Level.WARNING, subject, text)
        reader = DoorReader(pool, doors, finder, options.reader, clock)
        doors.listed(found, clock.now())
        async with reader.session() as session:
            await reader.read(session)
            asked = found if options.is_shared else []
            untold = [url for url in asked if not await _is_told(reader, session, url, pool)]
    finally:
        await finder.close()
    answering = sum(doors.cursor(address)[0] != "" for address in doors.addresses)
    text = f"{answering} of {len(found)} {one if len(found) == 1 else many} tell the demand of {pool}"
    if untold:
        remedy = f"write platform: {{kind: controller}} in the pool {pool} of its file"
        return Finding(Level.PROBLEM, subject, f"{untold[0]} cannot be told its replicas; {remedy}")
    if answering == len(found):
        return Finding(Level.OK, subject, text)
    silent = [address for address in doors.addresses if not doors.cursor(address)[0]]
    return Finding(
        Level.WARNING, subject, f"{text}; not {', '.join(silent[:3])}: {reader.trouble(silent[0])}"
    )


async def _is_told(reader: DoorReader, session: aiohttp.ClientSession, url: str, pool: str) -> bool:
    """Whether a proxy takes its replicas from a controller; one that does not answer is given the benefit."""
    try:
        async with session.get(f"{url}{PATH}{quote(pool, safe='')}", headers=reader.headers()) as answer:
            return answer.status != HTTPStatus.NOT_FOUND
    except (aiohttp.ClientError, OSError, ValueError):
        return True


async def _found(finder: Finder) -> list[str] | None:
    """Return who is found; some finders need a moment."""
    for pause in (*[_LOOK_AGAIN] * _LOOKS, 0.0):
        if (found := await finder.look()) is not None:
            return list(found)
        await asyncio.sleep(pause)
    return None


async def _probe_prometheus(
    pool: str, options: DemandOptions, place: PrometheusDemand, subject: str
) -> Finding:
    reader = PrometheusReader(pool, place, options.merge.carry, SystemClock())
    try:
        async with reader.session() as session:
            await reader.read(session)
    except aiohttp.ClientError as error:
        return Finding(Level.WARNING, subject, why_no_answer(error))
    if reader.trouble:
        return Finding(Level.WARNING, subject, f"{place.url}: {reader.trouble}")
    counted = "sidecar" if reader.doors == 1 else "sidecars"
    return Finding(Level.OK, subject, f"{place.url} has the metrics of {reader.doors} {counted}")
