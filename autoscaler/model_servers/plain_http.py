"""Any HTTP server that has a path for its health."""

from autoscaler.model_servers import HttpProbe
from autoscaler.tls import ClientTls


class PlainHttp:
    """Ready is what answers its health path with 2xx.

    Parameters
    ----------
    ready_path : str
        Path that is asked, with its leading slash. Change it to what the server offers.
    timeout : float
        No answer within it is a no [s]. Raise it for a server that answers probes only between requests.
    tls : ClientTls or None
        How the server is checked, if its URL is https.
    """

    def __init__(
        self, ready_path: str = "/healthz", timeout: float = 2.0, tls: ClientTls | None = None
    ) -> None:
        if not ready_path.startswith("/"):
            raise ValueError(f"need a ready_path that starts with '/', got {ready_path!r}")
        self._path = ready_path
        self._probe = HttpProbe(timeout, tls)

    async def ready(self, url: str) -> bool:
        """Whether the server at base URL `url` answers `ready_path` with 2xx."""
        return await self._probe.succeeds(url + self._path)

    async def slots(self, url: str) -> int | None:
        """Return None: it has no configuration that could be asked for."""
        return None

    async def close(self) -> None:
        """Let go of the HTTP session."""
        await self._probe.close()
