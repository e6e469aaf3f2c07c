"""What is seen of a cluster for one pool: what is scaled, its pods, and the EndpointSlices of its Service.

Two mirrors keep it: the slices say who is ready, and the pods who comes, who goes, and who cannot be
scheduled. The pods are those that the `/scale` of the thing selects, as it says now: who deletes it and makes
it anew with other labels is followed.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping
from typing import Any

import structlog

from autoscaler.errors import PlatformUnavailable
from autoscaler.platforms.kubernetes.api import Api
from autoscaler.platforms.kubernetes.mirror import Mirror
from autoscaler.platforms.kubernetes.options import KubernetesOptions
from autoscaler.platforms.kubernetes.pods import is_live, misses_of
from autoscaler.platforms.kubernetes.target import Scale, Target, find_target, slices_path
from autoscaler.remote_fleet import Pauses, fault_of

log = structlog.get_logger(__name__)


class Sight:
    """Looks from `start` to `stop`.

    Parameters
    ----------
    api : Api
        The API server.
    options : KubernetesOptions
        What is looked at.
    pauses : callable
        Makes the pauses between attempts while the API server is away.
    changed : callable
        Called after every change.
    """

    def __init__(
        self, api: Api, options: KubernetesOptions, pauses: Callable[[], Pauses], changed: Callable[[], None]
    ) -> None:
        self._api, self._options, self._new_pauses, self._changed = api, options, pauses, changed
        self._away: str | None = "the API server was not asked yet"
        self._selector: str | None = None
        self._pods: Mirror | None = None
        self._slices: Mirror | None = None
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self.target: Target | None = None
        """What is scaled; None until it was found."""

    def __repr__(self) -> str:
        return f"<Sight {self.target} pods={len(self.pods)}>"

    def start(self) -> None:
        """Begin to look."""
        self._tasks["connect"] = asyncio.create_task(self._connect(), name=f"find {self._options.name}")

    async def stop(self) -> None:
        """Look no more."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def first_look(self) -> None:
        """Wait until everything was listed once."""
        await asyncio.wait([self._tasks["connect"]])  # which goes on if nobody waits any more
        for mirror in (self._pods, self._slices):
            if mirror is not None:
                await mirror.listed.wait()

    @property
    def why_unknown(self) -> str | None:
        """Why nobody can tell what there is now; None if that is known."""
        if (fault := fault_of(self._tasks.values())) is not None:
            return fault
        if self._pods is None or self._slices is None:
            return self._away or "the API server was not asked yet"
        return self._pods.away or self._slices.away

    @property
    def is_whole(self) -> bool:
        """Whether everything has been listed, if perhaps a while ago."""
        mirrors = (self._pods, self._slices)
        return all(mirror is not None and mirror.listed.is_set() for mirror in mirrors)

    @property
    def pods(self) -> Mapping[str, Any]:
        """The pods by uid, as last seen."""
        return {} if self._pods is None else self._pods.objects

    @property
    def live_pods(self) -> list[Any]:
        """Those that are neither over nor terminating."""
        return list(filter(is_live, self.pods.values()))

    @property
    def slices(self) -> Collection[Any]:
        """The EndpointSlices, as last seen."""
        return () if self._slices is None else self._slices.objects.values()

    @property
    def missed_service(self) -> str | None:
        """What keeps all pods from being found by their Service, for a person; None if nothing does."""
        why = misses_of(self.slices, self._options.port) if self.is_whole else None
        return None if why is None else f"Service {self._options.service}: {why}"

    async def scale(self, target: Target) -> Scale:
        """Read what is asked for. Raises PlatformUnavailable if that cannot be done."""
        scale = await target.scale()
        if scale.selector != self._selector:
            self._mirror_pods(target, scale.selector)
        return scale

    async def _connect(self) -> None:
        """Find what is scaled, however long that takes, and mirror its pods and its Service."""
        pauses = self._new_pauses()
        while True:
            try:
                target = await find_target(self._api, self._options)
                scale = await target.scale()
                slices = await slices_path(self._api, target.namespace)
                break
            except PlatformUnavailable as error:
                tell = log.debug if self._away == str(error) else log.warning
                tell("what is scaled cannot be looked at", name=self._options.name, why=str(error))
                self._away = str(error)
                await asyncio.sleep(pauses.next())
        self.target, self._away = target, None
        self._mirror_pods(target, scale.selector)
        self._slices = self._mirror("slices", slices, f"kubernetes.io/service-name={self._options.service}")

    def _mirror_pods(self, target: Target, selector: str) -> None:
        if self._selector is not None:
            log.warning("its pods have other labels now", target=str(target), selector=selector)
        self._selector = selector
        self._pods = self._mirror("pods", f"/api/v1/namespaces/{target.namespace}/pods", selector)

    def _mirror(self, name: str, path: str, selector: str) -> Mirror:
        """Keep a copy from now on, in place of an earlier one of this name."""
        mirror = Mirror(self._api, path, selector, self._new_pauses(), self._changed)
        if name in self._tasks:
            self._tasks[name].cancel()
        self._tasks[name] = asyncio.create_task(mirror.run(), name=f"mirror {path}")
        return mirror
