"""Whether there is a cluster at all, before anything in it is asked for.

Several settings may need the same one. Where it is missing that is said once, and what would be asked there
is not tried: each trial would only say the same in other words.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from autoscaler.cli.findings import Finding, Level
from autoscaler.errors import PlatformUnavailable
from autoscaler.platforms.kubernetes import KubernetesOptions, LeaseOptions
from autoscaler.platforms.kubernetes.access import load_access
from autoscaler.settings import Settings
from autoscaler.telemetry.demand.options import KubernetesDoors

_Access = tuple[Path | None, str | None]
"""A kubeconfig and its context."""


@dataclass(frozen=True, slots=True)
class Clusters:
    """What was found of the clusters that the settings need."""

    findings: tuple[Finding, ...]
    """One for each that is missing."""
    missing: frozenset[_Access]

    def lack(self, options: object) -> bool:
        """Whether what the options are about is in a cluster that is missing."""
        return _access_of(options) in self.missing


async def probe_clusters(settings: Settings) -> Clusters:
    """Read how each cluster is reached; ask none of them."""
    needed: dict[_Access, str] = {}
    for subject, options in _places(settings):
        if (access := _access_of(options)) is not None:
            needed.setdefault(access, subject)
    findings: dict[_Access, Finding] = {}
    for access, subject in needed.items():
        try:
            await load_access(*access)
        except PlatformUnavailable as error:
            findings[access] = Finding(Level.PROBLEM, subject, str(error))
    return Clusters(tuple(findings.values()), frozenset(findings))


def _places(settings: Settings) -> Iterator[tuple[str, object]]:
    """Yield the key that says how a cluster is reached, and the options that it belongs to."""
    for pool in settings.pools.values():
        yield f"pools.{pool.name}.platform.kubeconfig", pool.platform
        if pool.demand is not None:
            yield f"pools.{pool.name}.demand.kubeconfig", pool.demand.place
    yield "leadership.kubeconfig", settings.leadership


def _access_of(options: object) -> _Access | None:
    """Return how the cluster is reached; None for what is in none."""
    if isinstance(options, KubernetesOptions | KubernetesDoors | LeaseOptions):
        return options.kubeconfig, options.context
    return None
