"""Values in the layout of the wire; NumPy is the judge."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.kserve.layout import FORMATS, SIZES, all_finite, from_wire, to_wire

DTYPES = {datatype: np.dtype(f"<{code}") for datatype, code in FORMATS.items()}
INTEGERS = [datatype for datatype, kind in DTYPES.items() if kind.kind in "iu"]


def values(datatype: str) -> st.SearchStrategy:
    kind = DTYPES[datatype]
    if kind.kind == "b":
        return st.booleans()
    if kind.kind == "f":
        return st.floats(width=8 * kind.itemsize, allow_nan=False)
    return st.integers(int(np.iinfo(kind).min), int(np.iinfo(kind).max))


@pytest.mark.parametrize("datatype", FORMATS)
@given(data=st.data())
def test_every_datatype_lies_as_in_numpy_and_comes_back(datatype, data):
    drawn = data.draw(st.lists(values(datatype), max_size=9))
    wire = to_wire(datatype, drawn)
    assert wire == np.array(drawn, DTYPES[datatype]).tobytes()
    assert len(wire) == len(drawn) * SIZES[datatype]
    assert list(from_wire(datatype, memoryview(b"x" + wire)[1:])) == drawn  # at any address


@given(st.lists(st.floats(allow_nan=False), max_size=9))
def test_double_precision_is_rounded_to_single_as_numpy_does_it(drawn):
    with np.errstate(over="ignore"):
        assert to_wire("FP32", drawn) == np.array(drawn, "<f4").tobytes()


HALF_WAY = math.ldexp(2 - 2**-24, 127)
"""Between the largest number of single precision and the next that there would be: it rounds up."""


@pytest.mark.parametrize("large", [HALF_WAY, 1e39, 1.7e308])
def test_what_is_too_large_for_single_precision_is_infinite(large):
    wire = to_wire("FP32", [large, -large, math.nextafter(HALF_WAY, 0.0), 0.5])
    assert from_wire("FP32", wire) == (math.inf, -math.inf, math.ldexp(2 - 2**-23, 127), 0.5)


@pytest.mark.parametrize("datatype", INTEGERS)
def test_integers_that_do_not_fit_are_an_error(datatype):
    info = np.iinfo(DTYPES[datatype])
    for one in (int(info.min) - 1, int(info.max) + 1, 2**70):
        with pytest.raises(OverflowError, match=f"does not fit {datatype}"):
            to_wire(datatype, [0, one])


@pytest.mark.parametrize("datatype", ["FP32", "FP64"])
@given(data=st.data())
def test_any_number_that_is_not_finite_is_found(datatype, data):
    size = SIZES[datatype]
    bits = data.draw(st.lists(st.binary(min_size=size, max_size=size) | extremes(datatype), max_size=9))
    wire = b"".join(bits)
    assert all_finite(datatype, memoryview(wire)) == np.isfinite(np.frombuffer(wire, DTYPES[datatype])).all()


def extremes(datatype: str) -> st.SearchStrategy[bytes]:
    info = np.finfo(DTYPES[datatype])
    near = [info.max, info.min, np.inf, -np.inf, np.nan, -np.nan, info.smallest_subnormal, 0.0]
    return st.sampled_from(near).map(lambda value: DTYPES[datatype].type(value).tobytes())
