"""Cancels a handling at its k-th await: as if its client left, or the program ended, right then."""

import asyncio
import types
from collections.abc import Generator


class Stepper:
    """Cancels what it runs at its k-th await; remembers how many awaits there were.

    A step is one resumption of the handling's coroutine by the loop. The k-th time that it yields, its task
    is cancelled before anything else can happen; with `cut` it is cut, as by the end of a drain.
    """

    def __init__(self, at: int, *, cut: bool) -> None:
        self.at = at
        self.cut = cut
        self.steps = 0

    @types.coroutine
    def run(self, handling: object, coroutine: object) -> Generator[object, object, object]:
        given, error = None, None
        while True:
            try:
                waited_for = coroutine.throw(error) if error is not None else coroutine.send(given)
            except StopIteration as done:
                return done.value
            self.steps += 1
            if self.steps == self.at:
                handling.cut() if self.cut else asyncio.current_task().cancel()
            try:
                given, error = (yield waited_for), None
            except BaseException as thrown:
                given, error = None, thrown
