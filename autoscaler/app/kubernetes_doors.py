"""Finds doors in a cluster: the admin ports of the pods behind a Service."""

import asyncio
from collections.abc import Collection
from random import Random

import structlog

from autoscaler.errors import PlatformUnavailable
from autoscaler.platforms.kubernetes.access import load_access
from autoscaler.platforms.kubernetes.api import Api
from autoscaler.platforms.kubernetes.mirror import Mirror
from autoscaler.platforms.kubernetes.pods import members_of
from autoscaler.platforms.kubernetes.target import slices_path
from autoscaler.remote_fleet import Pauses
from autoscaler.telemetry.demand.options import KubernetesDoors

_PAUSE_INITIAL, _PAUSE_MAX = 1.0, 30.0
"""Between attempts while the API server is away [s]."""

log = structlog.get_logger(__name__)


class KubernetesFinder:
    """Keeps a copy of the EndpointSlices of a Service, and reads the doors off it.

    Pods that terminate are listed too, as long as they are: they say themselves when they have ended.
    """

    def __init__(self, options: KubernetesDoors, rng: Random | None = None) -> None:
        self._options = options
        self._api = Api(lambda: load_access(options.kubeconfig, options.context))
        self._pauses = Pauses(_PAUSE_INITIAL, _PAUSE_MAX, rng or Random())
        self._mirror: Mirror | None = None
        self._task: asyncio.Task[None] | None = None
        self._trouble = ""

    async def look(self) -> Collection[str] | None:
        """Return a base URL for each pod; None while nobody can tell."""
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name=f"doors of {self._options.service}")
        if self._mirror is None or not self._mirror.listed.is_set() or self._mirror.away is not None:
            return None
        slices = self._mirror.objects.values()
        members = members_of(slices, {}, self._options.port, self._options.is_https, ())
        return [member.url for member in members]

    @property
    def trouble(self) -> str:
        """Why nobody can tell, if nobody can, for a person."""
        return self._trouble if self._mirror is None else self._mirror.away or ""

    async def close(self) -> None:
        """Watch no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._api.close()

    async def _run(self) -> None:
        """Find out where slices are listed, however long that takes, and mirror them."""
        while True:
            try:
                namespace = self._options.namespace or await self._api.namespace()
                path = await slices_path(self._api, namespace)
                break
            except PlatformUnavailable as error:
                if str(error) != self._trouble:
                    log.warning("doors cannot be found yet", service=self._options.service, why=str(error))
                self._trouble = str(error)
                await asyncio.sleep(self._pauses.next())
        selector = f"kubernetes.io/service-name={self._options.service}"
        self._mirror = Mirror(self._api, path, selector, self._pauses, lambda: None)
        await self._mirror.run()
