"""A real Prometheus that scrapes whoever is listed in a file, and can be stopped, killed and started anew."""

import asyncio
import json
import os
import shutil
import signal
from collections.abc import Iterable
from pathlib import Path

import aiohttp

from load.free_port import free_address
from load.trial.child import Child

JOB = "sidecars"
ABSENT = "Prometheus is not installed (apt-get install prometheus)"


def installed() -> bool:
    """Whether there is one to be run."""
    return shutil.which("prometheus") is not None


class Prometheus(Child):
    """Keeps its samples over a restart, as one with a disk does.

    Parameters
    ----------
    folder : Path
        Of its files.
    scrape_interval : float
        Between two scrapes of a sidecar [s].
    """

    def __init__(self, folder: Path, scrape_interval: float) -> None:
        folder.mkdir()
        address = free_address()
        self.url = f"http://{address}"
        self._targets = folder / "targets.json"
        self.scrape([])
        found = {"job_name": JOB, "file_sd_configs": [{"files": [str(self._targets)]}]}
        every = {"scrape_interval": f"{scrape_interval * 1e3:.0f}ms"}
        (folder / "prometheus.yml").write_text(json.dumps({"global": every, "scrape_configs": [found]}))
        options = {
            "config.file": folder / "prometheus.yml",
            "storage.tsdb.path": folder / "data",
            "web.listen-address": address,
            "log.level": "warn",
        }
        words = ["prometheus", *(f"--{name}={value}" for name, value in options.items())]
        super().__init__("Prometheus", words, folder / "prometheus.log")

    def scrape(self, addresses: Iterable[str]) -> None:
        """Scrape exactly these from now on, as `host:port`; it takes up to five seconds to begin."""
        listed = json.dumps([{"targets": sorted(addresses)}])
        if self._targets.exists() and self._targets.read_text() == listed:
            return
        new = self._targets.with_suffix(".new")
        new.write_text(listed)
        os.replace(new, self._targets)  # noqa: PTH105 - whoever reads it sees one or the other

    def stop(self) -> None:
        """Have it stand still: it takes connections, and answers nobody."""
        self.send(signal.SIGSTOP)

    def go_on(self) -> None:
        """Have it go on."""
        self.send(signal.SIGCONT)

    async def end(self) -> None:
        """End it in order, even if it stands still."""
        self.go_on()
        await super().end()

    async def until_it_scrapes(self, sidecars: int) -> None:
        """Wait until it answers, and has scraped so many well."""
        while await self.scrapes() < sidecars:  # noqa: ASYNC110 - it must be asked
            await asyncio.sleep(0.2)

    async def scrapes(self) -> int:
        """Return how many sidecars it has scraped well of late [1]; 0 if it does not answer."""
        query = f'sum(up{{job="{JOB}"}})'
        try:
            async with (
                aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=1.0)) as session,
                session.get(f"{self.url}/api/v1/query", params={"query": query}) as answer,
            ):
                result = (await answer.json())["data"]["result"]
                return int(result[0]["value"][1]) if result else 0
        except (aiohttp.ClientError, OSError, ValueError, KeyError):
            return 0
