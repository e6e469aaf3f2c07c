"""How many tokens an answer took, and when they came: as it says, or by an estimate.

Servers of the OpenAI and Anthropic kind say it in `usage`: a body in one piece does, at its end or its
beginning; a stream in its last event, if it was asked to. Its bytes are looked for as the answer passes; the
object behind it, and nothing else, is parsed when the answer has ended. What is held is bounded: the first
and the last `usage`, and of a stream the event that has not come in full.

Where nothing is said, a piece of text that a stream adds to its answer (a delta of OpenAI's kind) is taken to
be one token; an event in which none is found likewise; and in other answers four bytes. Nothing is decoded:
in an answer that is compressed nothing is found, and its bytes are counted.
"""

import json
import re
from collections.abc import Callable, Mapping
from math import nan
from typing import Any

from autoscaler.domain import TokenUse

_BYTES_PER_TOKEN = 4

_USAGE_NAME = b'"usage"'
_USAGE = re.compile(rb'"usage"\s*:\s*(?=\{)')
"""Inside of a text the quotes would be escaped, so this is a name."""
_USAGE_MAX = 4096
"""So much of what follows its name is kept [bytes]: some numbers."""

_DELTA = re.compile(
    rb'"(?:content|text|reasoning_content|reasoning|arguments|delta|partial_json|thinking)"\s*:\s*"[^"]'
)
"""A text that is not empty, under one of the names that deltas have."""

_QUOTE, _LINE_END = b'"\n'

_EVENT = b"data:"
_EVENT_MAX = 64 * 1024
"""Of an event that comes in pieces so much is kept, its end [bytes]."""
_BODY_BEGINS, _EVENTS_BEGIN = b"{[", b"deir:"
"""First bytes of a JSON text, and of the fields of an event: data, event, id, retry, and comments."""
_BODY_REST = 32
"""The name of `usage` and what stands between it and its object is no longer than this [bytes]."""
_LINE_ENDS = (b"\n", b"\r")


def estimate(text_bytes: int) -> float:
    """Return about how many tokens so much text is."""
    return text_bytes / _BYTES_PER_TOKEN


_EVENT_LINE = re.compile(rb"(?:^|[\n\r])data:")
"""Data at the beginning of a line; in the text of a delta the same letters mean nothing."""


class TokenCount:
    """Reads along with one answer.

    Parameters
    ----------
    asked : float
        Estimate of the tokens of the request.
    now : callable
        Returns the time [s, monotonic].
    """

    def __init__(self, asked: float, now: Callable[[], float]) -> None:
        self._asked = asked
        self._now = now
        self._note: Callable[[bytes], None] = self._begin
        self._bytes = self._events = self._deltas = 0
        self._delta = b""
        """What stands before the text of a delta, `"content":"`, where each event has one."""
        self._rest = b""
        """What has come of a line, or the last bytes of a body: what is looked for may go on in the next."""
        self._first_usage = self._last_usage = b""
        self._first_at = self._last_at = nan

    def note(self, piece: bytes) -> None:
        """Take in the next piece of the answer."""
        # As a rule it is one event, in one line, with one delta like the one before: cheap to tell.
        delta = self._delta
        if delta and piece.find(b"\n") == len(piece) - 2 and piece[-1] == _LINE_END and not self._rest:
            at = piece.find(delta)
            if at >= 0 and piece[at + len(delta)] != _QUOTE and piece.find(delta, at + 1) < 0:
                self._deltas += 1
                self._last_at = self._now()
                if _USAGE_NAME in piece:
                    self._keep_usage(piece)
                return
        self._bytes += len(piece)
        self._note(piece)

    @property
    def tokens(self) -> float:
        """Tokens of request and answer together, as far as is known by now."""
        said = self._said()
        if said is None:
            return self._asked + (self._deltas or self._events or estimate(self._bytes))
        tokens_in, tokens_out = said
        return (self._asked if tokens_in is None else tokens_in) + tokens_out

    def use(self, started_at: float) -> TokenUse | None:
        """Return what is known by now of the answer of a language model; None if it is none.

        Parameters
        ----------
        started_at : float
            When its request got its slot [s, monotonic].
        """
        said = self._said()
        if said is None and not self._deltas:
            return None
        tokens_in, tokens_out = said or (None, self._deltas)
        return TokenUse(
            round(self._asked) if tokens_in is None else tokens_in,
            tokens_out,
            tokens_in is None,
            started_at,
            self._first_at,
            self._last_at,
        )

    # -- as it passes

    def _begin(self, piece: bytes) -> None:
        if not (begin := piece.lstrip()[:1]):
            return
        if begin in _BODY_BEGINS:
            self._note = self._read_body
        else:
            self._note = self._read_events if begin in _EVENTS_BEGIN else self._ignore
        self._note(piece)

    def _ignore(self, piece: bytes) -> None:
        """Look at nothing: it is neither JSON nor a stream of events."""

    def _read_body(self, piece: bytes) -> None:
        if self._last_usage and len(self._last_usage) < _USAGE_MAX:  # it may go on
            self._last_usage += piece[: _USAGE_MAX - len(self._last_usage)]
        looked_at = self._rest + piece
        if _USAGE_NAME in looked_at:
            self._keep_usage(looked_at)
        self._rest = looked_at[-_BODY_REST:]

    def _read_events(self, piece: bytes) -> None:
        if self._rest:
            piece, self._rest = self._rest + piece, b""
        if piece[-1:] not in _LINE_ENDS:
            end = max(piece.rfind(b"\n"), piece.rfind(b"\r")) + 1
            piece, self._rest = piece[:end], piece[end:][-_EVENT_MAX:]
        if deltas := _DELTA.findall(piece):
            self._last_at = self._now()
            if not self._deltas:
                self._first_at = self._last_at
            self._deltas += len(deltas)
            self._delta = deltas[-1][:-1] if len(deltas) == len(_EVENT_LINE.findall(piece)) else b""
        elif not self._deltas:
            self._events += piece.count(_EVENT)
        if _USAGE_NAME in piece:
            self._keep_usage(piece)

    def _keep_usage(self, text: bytes) -> None:
        at = text.rfind(_USAGE_NAME)
        while (found := _USAGE.match(text, at)) is None:  # it is a text, or names nothing
            if (at := text.rfind(_USAGE_NAME, 0, at)) < 0:
                return
        self._last_usage = text[found.end() : found.end() + _USAGE_MAX]
        # Anthropic's streams say at the beginning what was asked, and at the end what was answered.
        if not self._first_usage and (first := _USAGE.search(text)):
            self._first_usage = text[first.end() : first.end() + _USAGE_MAX]

    # -- what was said

    def _said(self) -> tuple[int | None, int] | None:
        """Return the tokens in, where they are told, and out; None if nothing is."""
        last = _numbers(self._last_usage)
        if not last:
            return None
        first = _numbers(self._first_usage)
        tokens_in = _number(last, "prompt_tokens", "input_tokens")
        if tokens_in is None:
            tokens_in = _number(first, "prompt_tokens", "input_tokens")
        tokens_out = _number(last, "completion_tokens", "output_tokens")
        total = _number(last, "total_tokens")
        if tokens_in is None and tokens_out is None:
            return None if total is None else (total, 0)
        if tokens_out is None:
            tokens_out = 0 if total is None else max(0, total - (tokens_in or 0))
        return tokens_in, tokens_out


def _numbers(usage: bytes) -> Mapping[str, Any]:
    """Return the object at the beginning of `usage`; an empty one if it is none, or was cut off."""
    try:
        found, _ = json.JSONDecoder().raw_decode(usage.decode("utf-8", "replace"))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _number(usage: Mapping[str, Any], *names: str) -> int | None:
    for name in names:
        said = usage.get(name)
        if isinstance(said, int) and not isinstance(said, bool) and 0 <= said < 10**12:
            return said
    return None
