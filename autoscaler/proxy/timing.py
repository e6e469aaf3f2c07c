"""Where the time of a request went, as `Server-Timing` says it."""


def server_timing(waited: float, served: float | None) -> str:
    """Return the value: time in the queue, and in a slot if it had one [s], written in ms."""
    timing = f"queue;dur={waited * 1000:.1f}"
    return timing if served is None else f"{timing}, service;dur={served * 1000:.1f}"
