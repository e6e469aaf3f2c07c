"""A stored decision is the decision that was taken, bit for bit."""

import math
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.domain import Binding, Fleet, Hold, Numbers, Observation, Reason, ScaleTo
from autoscaler.telemetry.decision_codec import (
    DecisionRecord,
    decision_from_plain,
    decision_to_plain,
    record_from_plain,
    record_from_row,
    record_to_plain,
    record_to_row,
)
from autoscaler.telemetry.plain import decode, encode

any_float = st.floats(allow_nan=True, allow_infinity=True)
count = st.integers(0, 2**53)
numbers = st.builds(
    Numbers,
    **{name: any_float for name in Numbers.__slots__ if name[:5] not in ("serve", "repli", "asked")},
    **{name: count for name in Numbers.__slots__ if name[:5] in ("serve", "repli")},
    **{name: st.none() | count for name in Numbers.__slots__ if name[:5] == "asked"},
)
reason, binding = st.sampled_from(Reason), st.sampled_from(Binding)
scale_to = st.builds(ScaleTo, desired=count, current=count, reason=reason, binding=binding, numbers=numbers)
hold = st.builds(Hold, desired=count, reason=reason, binding=binding, numbers=numbers)
fleet = st.builds(
    Fleet,
    ready=count,
    starting=count,
    draining=count,
    slots_per_replica=st.integers(1, 1000),
    cold_start_mean=any_float,
    cold_start_p90=any_float,
    asleep=count,
    overdue=count,
    asked=st.none() | count,
    edited=st.none() | count,
)
observation = st.builds(
    Observation,
    **{
        name: any_float if name in ("interval", "oldest_wait", "wall_time", "busy_slots_mean") else count
        for name in Observation.__slots__
        if not name.startswith(("service", "is_"))
    },
    is_partial=st.booleans(),
    service_time_sum=any_float,
    service_time_square_sum=any_float,
)
record = st.builds(
    DecisionRecord,
    pool=st.text(),
    wall_time=st.floats(0, 4e9),
    now=st.floats(0, 1e9),
    observation=st.none() | observation,
    fleet=fleet,
    decision=scale_to | hold,
)


@given(record)
def test_a_row_gives_back_the_very_record(kept):
    assert bits(record_from_row(record_to_row(kept))) == bits(kept)


@given(record)
def test_what_the_admin_listener_sends_gives_back_the_very_record(kept):
    wire = encode(record_to_plain(kept))
    assert bits(record_from_plain(decode(wire, dict))) == bits(kept)


def test_what_is_not_known_is_null_and_not_zero():
    plain = decision_to_plain(Hold(3, Reason.METRICS_LOST, Binding.NONE))
    assert plain["kind"] == "hold"
    assert plain["numbers"]["arrival_rate"] is None
    assert math.isnan(decision_from_plain(plain).numbers.arrival_rate)


def test_numbers_that_numpy_made_are_kept_as_numbers():
    decision = Hold(np.int64(3), Reason.IDLE, Binding.BAND, Numbers(arrival_rate=np.float64(0.1)))
    assert decision_from_plain(decision_to_plain(decision)) != decision  # NaN differs from itself
    assert decision_to_plain(decision)["numbers"]["arrival_rate"] == 0.1
    assert decision_from_plain(decision_to_plain(decision)).desired == 3


@pytest.mark.parametrize(
    ("plain", "complaint"),
    [
        ({"kind": "guess"}, "'guess'"),
        ([], "None"),
        ({"kind": "hold", "desired": "many", "reason": "idle", "binding": "none"}, "desired"),
        ({"kind": "hold", "desired": 1, "reason": "no idea", "binding": "none"}, "no idea"),
    ],
)
def test_what_is_no_decision_is_refused_by_the_name_of_the_field(plain, complaint):
    with pytest.raises(ValueError, match=complaint):
        decision_from_plain(plain)


def test_a_field_that_a_later_version_added_is_passed_over():
    plain = decision_to_plain(Hold(3, Reason.IDLE, Binding.BAND)) | {"mood": "calm"}
    assert decision_from_plain(plain).desired == 3


def bits(value):
    """Spell out a nested dataclass with every float as its eight bytes, and all NaNs as one."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else struct.pack(">d", value)
    if hasattr(value, "__slots__") and hasattr(value, "__dataclass_fields__"):
        return type(value).__name__, [bits(getattr(value, name)) for name in value.__dataclass_fields__]
    return value
