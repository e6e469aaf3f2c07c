"""How a question travels to a server: the message that asks goes in, the message that answers comes out."""

from typing import Protocol, TypeVar

from autoscaler.model_servers.triton.messages import Message

Told = TypeVar("Told", bound=Message)


class NotAnswered(Exception):
    """The server did not answer, or said no; the text is its reason, as far as it gave one."""


class Transport(Protocol):
    """HTTP or gRPC; each question takes a connection of its own."""

    async def ask(
        self, url: str, question: Message, answer: type[Told], patience: float | None = None
    ) -> Told:
        """Return the answer to `question` of the server at base URL `url`.

        `patience` [s] where it may take longer than a probe. Raises NotAnswered.
        """

    async def close(self) -> None:
        """Let go of connections; from now on nothing is answered."""
