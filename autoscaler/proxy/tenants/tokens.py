"""How many tokens a request took: as its answer says, or by an estimate.

Servers of the OpenAI and Anthropic kind say it at the end of an answer (`usage`), of a stream only when they
were asked. So the end of the answer is kept while it passes, and looked through when it has. Where nothing is
said, a token is taken to be four bytes of text, and an event of a stream to be one token. Nothing is decoded:
in an answer that is compressed nothing is found, and its bytes are counted.
"""

import re

_BYTES_PER_TOKEN = 4
_TAIL_BYTES = 4096
"""The end of an answer in which its usage is looked for [bytes]."""

_TOTAL = re.compile(rb'"total_tokens"\s*:\s*(\d{1,12})')
_IN, _OUT = re.compile(rb'"input_tokens"\s*:\s*(\d{1,12})'), re.compile(rb'"output_tokens"\s*:\s*(\d{1,12})')
_EVENT = b"data:"


def estimate(text_bytes: int) -> float:
    """Return about how many tokens so much text is."""
    return text_bytes / _BYTES_PER_TOKEN


class TokenCount:
    """Reads along with one answer.

    Parameters
    ----------
    asked : float
        Estimate of the tokens of the request.
    """

    def __init__(self, asked: float) -> None:
        self._asked = asked
        self._bytes = self._events = 0
        self._head = self._tail = b""

    def note(self, piece: bytes) -> None:
        """Take in the next piece of the answer."""
        if len(self._head) < _TAIL_BYTES:  # Anthropic's streams say at the beginning what was asked
            self._head += piece[: _TAIL_BYTES - len(self._head)]
        self._bytes += len(piece)
        self._events += piece.count(_EVENT)
        self._tail = (self._tail + piece[-_TAIL_BYTES:])[-_TAIL_BYTES:]

    @property
    def tokens(self) -> float:
        """Tokens of request and answer together, as far as is known by now."""
        if total := _TOTAL.findall(self._tail):
            return float(total[-1])
        asked, answered = _IN.findall(self._tail) or _IN.findall(self._head), _OUT.findall(self._tail)
        if answered:
            return float(answered[-1]) + (float(asked[-1]) if asked else self._asked)
        return self._asked + (self._events or estimate(self._bytes))
