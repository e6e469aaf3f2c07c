"""NVIDIA Triton, and what else speaks KServe v2 over HTTP.

Triton says "not ready" with 400, not 503; here everything but 2xx is a no.
"""

from urllib.parse import quote

from autoscaler.model_servers import HttpProbe
from autoscaler.tls import ClientTls


class Triton:
    """Ready is a server that is ready and, if one is named, whose model is ready.

    Parameters
    ----------
    model : str or None
        The model that must be loaded too. None asks the server only, which by Triton's default is
        ready once all models of its repository are.
    timeout : float
        No answer within it, for each of the two questions, is a no [s].
    tls : ClientTls or None
        How the server is checked, if its URL is https.
    """

    def __init__(self, model: str | None = None, timeout: float = 2.0, tls: ClientTls | None = None) -> None:
        self._model = model
        self._probe = HttpProbe(timeout, tls)

    async def ready(self, url: str) -> bool:
        """Whether the server at base URL `url`, and the model, are ready."""
        if not await self._probe.succeeds(f"{url}/v2/health/ready"):
            return False
        if self._model is None:
            return True
        return await self._probe.succeeds(f"{url}/v2/models/{quote(self._model, safe='')}/ready")

    async def close(self) -> None:
        """Let go of the HTTP session."""
        await self._probe.close()
