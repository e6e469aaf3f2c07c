"""Model servers that are up or down as the test says, for platforms that only probe them."""


class ScriptedServers:
    """Answers probes; counts them."""

    def __init__(self, *up: str):
        self.up = set(up)
        self.asked: list[str] = []

    async def ready(self, url: str) -> bool:
        self.asked.append(url)
        return url in self.up
