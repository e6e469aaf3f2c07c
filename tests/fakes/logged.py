"""What was logged as an error while a test ran."""

import logging

import pytest

_LEFT_BEHIND = ("Unclosed client session", "Unclosed connector")
"""Said when rubbish is collected, which may be that of any test before."""
_GRPC_WOKEN_FOR_NOTHING = "PollerCompletionQueue"
"""gRPC's own queue is woken once too often on a busy machine, finds nothing (BlockingIOError) and goes on."""


def errors(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    """Return the errors of this program and its loop in the test's own time."""
    return [
        record
        for record in caplog.get_records("call")
        if record.levelno >= logging.ERROR
        and not record.getMessage().startswith(_LEFT_BEHIND)
        and _GRPC_WOKEN_FOR_NOTHING not in record.getMessage()
    ]
