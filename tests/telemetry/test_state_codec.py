"""A controller is read back as it was; a pickle that would do anything else is refused unread."""

import os
import pickle
import zlib
from functools import partial

import pytest

from autoscaler.domain import Objective
from autoscaler.errors import UsageError
from autoscaler.scaling import Controller
from autoscaler.telemetry.state_codec import StateUnreadable, compress, freeze, thaw


class Calls:
    """Pickles as the call of `function` with `arguments`."""

    def __init__(self, function, *arguments):
        self._call = (function, arguments)

    def __reduce__(self):
        return self._call


def stored(state) -> bytes:
    return compress(freeze(state))


def named(module: str, name: str) -> bytes:
    """A pickle that asks for a name as protocol 4 does: dots in it go from attribute to attribute."""
    texts = b"".join(b"\x8c" + bytes([len(text)]) + text.encode() for text in (module, name))
    return compress(b"\x80\x04" + texts + b"\x93.")


def test_a_controller_is_read_back_anew_at_each_call():
    kept = stored(Controller(Objective()))
    first, second = thaw(kept), thaw(kept)
    assert isinstance(first, Controller)
    assert first is not second
    assert freeze(first) == freeze(second)


def test_a_malicious_pickle_is_refused_and_not_executed(tmp_path):
    trace = tmp_path / "trace"
    with pytest.raises(UsageError, match=r"names posix\.mkdir.*was not executed"):
        thaw(stored(Calls(os.mkdir, str(trace))))
    assert not trace.exists()
    pickle.loads(freeze(Calls(os.mkdir, str(trace))))
    assert trace.exists()  # a reader that trusts it does it


@pytest.mark.parametrize(
    "module, name",
    [
        ("builtins", "eval"),
        ("builtins", "getattr"),
        ("functools", "partial"),
        ("numpy", "fromfile"),
        ("autoscaler.kept_file", "keep"),  # ours, but it writes files
        ("autoscaler.telemetry.history", "History"),
        ("autoscaler.scaling.fit", "fit"),  # a function, which would read another pickle
        ("autoscaler.scaling.fit", "pickle"),
        ("autoscaler.scaling.fit", "pickle.loads"),  # through what a module imported
        ("autoscaler.scaling.seasonal_forecast", "partial"),
        ("autoscaler.scaling_of_others", "Controller"),
    ],
)
def test_only_classes_of_the_packages_that_decide_are_admitted(module, name):
    with pytest.raises(UsageError, match="names"):
        thaw(named(module, name))


def test_a_call_that_hides_within_a_controller_is_refused(tmp_path):
    controller = Controller(Objective())
    controller._recently = partial(os.mkdir, str(tmp_path / "trace"))
    with pytest.raises(UsageError, match=r"names functools\.partial"):
        thaw(stored(controller))


@pytest.mark.parametrize(
    "damaged",
    [
        b"",
        b"no zlib",
        stored(Objective())[:-9],
        zlib.compress(b"no pickle"),
        named("forecasting.gone", "Gone"),
    ],
)
def test_what_is_damaged_or_of_another_version_is_unreadable(damaged):
    with pytest.raises(StateUnreadable):
        thaw(damaged)


def test_what_would_only_fill_the_memory_is_unreadable(monkeypatch):
    monkeypatch.setattr("autoscaler.telemetry.state_codec._SIZE_MAX", 1000)
    with pytest.raises(StateUnreadable, match="larger"):
        thaw(stored(bytes(10_000)))
