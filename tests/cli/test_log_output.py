"""How logs look."""

import logging
import sys

import pytest
import structlog

from autoscaler.cli.log_output import configure_logs


@pytest.mark.parametrize("for_person", [False, True])
def test_a_traceback_shows_where_and_never_what(for_person, monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: for_person)
    before = logging.getLogger().handlers[:]
    configure_logs("info")
    try:
        _fail_with("-".join(("sk", "secret")))
    except ValueError:
        structlog.get_logger("test").exception("a fault")
        logging.getLogger("test").exception("another")
    finally:
        logging.getLogger().handlers[:] = before
        structlog.reset_defaults()
    logged = capsys.readouterr().err
    assert logged.count("_fail_with") >= 2
    assert "sk-secret" not in logged


def _fail_with(key: str) -> None:
    held = {"Authorization": key}
    raise ValueError(f"{len(held)} header is too many")
