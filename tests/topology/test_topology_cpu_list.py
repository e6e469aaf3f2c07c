import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.topology.cpu_list import format_cpu_list, parse_cpu_list


@pytest.mark.parametrize(
    "text, numbers", [("", set()), ("0\n", {0}), ("0-3,8", {0, 1, 2, 3, 8}), ("5,1-2", {1, 2, 5})]
)
def test_a_list_is_read_as_the_kernel_writes_it(text, numbers):
    assert parse_cpu_list(text) == numbers


def test_what_is_no_list_is_refused():
    with pytest.raises(ValueError):
        parse_cpu_list("all")


@given(st.sets(st.integers(0, 300)))
def test_what_is_written_is_read_back(numbers):
    assert parse_cpu_list(format_cpu_list(numbers)) == numbers
