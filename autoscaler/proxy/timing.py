"""Where the time of a request went, as `Server-Timing` says it."""

from autoscaler.proxy.grant import Grant


def server_timing(waited: float, served: float = 0.0, grant: Grant | None = None) -> str:
    """Return the value, written in ms: time in the queue, and in the slot of `grant`, if it has one [s]."""
    timing = f"queue;dur={waited * 1000:.1f}"
    if grant is None:
        return timing
    if (shared := grant.shared) is not None:
        timing += f', batch;dur={shared.merge_time * 1000:.1f};desc="{shared.rows} rows"'
    return f"{timing}, service;dur={served * 1000:.1f}"
