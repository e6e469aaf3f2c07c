"""A copy of all objects of one kind that match, kept current by a list and then a watch.

A watch goes on from the version that was seen last, so nothing is missed when it ends, as it does every
minute of its own accord, or when its connection breaks. Where that version is gone (410) everything is listed
anew, after a pause if that was just done. A watch on which nothing comes for longer than it should last is
taken to be dead, for a network that swallows everything looks like one on which nothing happens. While the
API server is away the copy stays as it was, and says so.
"""

import asyncio
from collections.abc import Callable
from math import inf
from urllib.parse import quote

import structlog

from autoscaler.errors import PlatformUnavailable
from autoscaler.platforms.kubernetes.api import GONE, Api, ApiAway, ApiRefused, Json, refusal_of
from autoscaler.remote_fleet import Pauses

WATCH_SECONDS = 60
"""The server ends a watch after so long, and it is opened again [s]."""
_SILENCE = WATCH_SECONDS + 15.0
_SHORT = 1.0
"""A watch that ends sooner was no watch [s]."""

log = structlog.get_logger(__name__)


class Mirror:
    """The objects at `path`, by uid.

    Parameters
    ----------
    api : Api
        The API server.
    path : str
        Of the list.
    selector : str
        Labels that they must have.
    pauses : Pauses
        Between attempts while the API server is away.
    changed : callable
        Called after every change, and when the copy becomes current or stale.
    """

    def __init__(
        self, api: Api, path: str, selector: str, pauses: Pauses, changed: Callable[[], None]
    ) -> None:
        self._api, self._path, self._selector, self._pauses = api, path, selector, pauses
        self._changed = changed
        self._listed_at = -inf
        self._told: str | None = None
        """What was said last of what keeps the copy from being current; None if nothing does."""
        self.objects: dict[str, Json] = {}
        self.listed = asyncio.Event()
        """Set once everything has been listed for the first time."""
        self.away: str | None = "not asked yet"
        """Why the copy may be out of date; None if it is not."""

    async def run(self) -> None:
        """Keep the copy current, for ever."""
        version = None
        while True:
            try:
                version = await self._list() if version is None else version
                version = await self._watch(version)
            except ApiRefused as error:
                if error.status == GONE and version is not None:
                    log.info("watch begins anew", path=self._path)
                    await self._rest_after_a_list()
                else:
                    await self._wait(error)
                version = None
            except PlatformUnavailable as error:
                await self._wait(error)
            except (KeyError, TypeError, ValueError) as error:
                await self._wait(ApiAway(f"an answer about {self._path} is not understood: {error!r}"))
                version = None

    async def _list(self) -> str:
        """Take in the whole list; return its version."""
        query = f"?labelSelector={quote(self._selector, safe='')}"
        found = await self._api.get(self._path + query)
        self.objects = {each["metadata"]["uid"]: each for each in found["items"]}
        self._listed_at = asyncio.get_running_loop().time()
        self._found()
        return str(found["metadata"]["resourceVersion"])

    async def _rest_after_a_list(self) -> None:
        """Pause if everything was listed just now: a server may forget each version at once."""
        if asyncio.get_running_loop().time() - self._listed_at < _SHORT:
            await asyncio.sleep(self._pauses.next())

    async def _watch(self, version: str) -> str:
        """Follow the changes after `version`; return the version at which to go on."""
        query = {
            "labelSelector": self._selector,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
            "timeoutSeconds": str(WATCH_SECONDS),
        }
        began = asyncio.get_running_loop().time()
        opened = False
        try:
            async with self._api.watch(self._path, query, _SILENCE) as events:
                self._tell_that_it_answers()
                self._found()
                opened = True
                async for event in events:
                    version = self._take_in(event, version)
        except ApiAway as error:
            if not opened:
                raise
            log.debug("watch broke and is opened again", path=self._path, why=str(error))
        if asyncio.get_running_loop().time() - began < _SHORT:
            await asyncio.sleep(self._pauses.next())
        else:
            self._pauses.reset()
        return version

    def _take_in(self, event: Json, version: str) -> str:
        kind, found = event["type"], event["object"]
        if kind == "ERROR":
            raise refusal_of(found, self._path)
        version = str(found["metadata"]["resourceVersion"])
        if kind == "BOOKMARK":
            return version
        if kind == "DELETED":
            self.objects.pop(found["metadata"]["uid"], None)
        else:
            self.objects[found["metadata"]["uid"]] = found
        self._changed()
        return version

    def _found(self) -> None:
        """The copy is current."""
        self.away = None
        self.listed.set()
        self._changed()

    def _tell_that_it_answers(self) -> None:
        """Say it of the watch: who may list and not watch would be told so again and again."""
        if self._told is not None:
            log.info("API server answers again", path=self._path)
        self._told = None

    async def _wait(self, error: PlatformUnavailable) -> None:
        """The copy may be out of date; try again in a while."""
        tell = log.debug if self._told == str(error) else log.warning
        tell("API server cannot be asked; what is known stays", why=str(error))
        self.away = self._told = str(error)
        self._changed()
        await asyncio.sleep(self._pauses.next())
