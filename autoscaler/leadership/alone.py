"""Leadership of a program that is the only one of its kind."""

import asyncio


class Alone:
    """Leads always; implements `ports.Leadership`."""

    is_leader = True
    leader: str | None = "this program"

    async def run(self) -> None:
        """Have nothing to do until cancelled."""
        await asyncio.Event().wait()
