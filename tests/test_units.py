"""Quantities are read as people write them, and written so that they can be read back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaler import units
from autoscaler.units import Address


@pytest.mark.parametrize(
    "written, seconds",
    [
        ("250ms", 0.25),
        ("10s", 10.0),
        ("5m", 300.0),
        ("5 min", 300.0),
        ("1h", 3600.0),
        ("1d", 86400.0),
        ("4w", 2419200.0),
        ("1h30m", 5400.0),
        ("1.5h", 5400.0),
        (".5s", 0.5),
        (" 10s ", 10.0),
        ("500us", 0.0005),
        (10, 10.0),
        (0.5, 0.5),
        ("10", 10.0),
        ("1e3", 1000.0),
        (0, 0.0),
    ],
)
def test_a_duration_is_read_in_seconds(written, seconds):
    assert units.parse_duration(written) == seconds


@pytest.mark.parametrize(
    "written, size",
    [
        ("64MiB", 64 * 2**20),
        ("64Mi", 64 * 2**20),
        ("1GB", 10**9),
        ("1 kB", 1000),
        ("0.5KiB", 512),
        ("2TiB", 2**41),
        ("17B", 17),
        (1024, 1024),
        ("1024", 1024),
    ],
)
def test_a_size_is_read_in_bytes(written, size):
    assert units.parse_size(written) == size


@pytest.mark.parametrize(
    "written, rate",
    [("60/min", 1.0), ("1.5/s", 1.5), ("3600/h", 1.0), ("86400 / day", 1.0), ("5/ms", 5000.0), (2, 2.0)],
)
def test_a_rate_is_read_per_second(written, rate):
    assert units.parse_rate(written) == rate


@pytest.mark.parametrize(
    "written, fraction", [("75%", 0.75), (0.75, 0.75), ("99.9 %", 0.999), (1, 1.0), (0, 0.0)]
)
def test_a_fraction_is_read_from_percent_or_as_it_is(written, fraction):
    assert units.parse_fraction(written) == fraction


@pytest.mark.parametrize(
    "written, host, port",
    [
        ("127.0.0.1:8080", "127.0.0.1", 8080),
        (":8080", "", 8080),
        ("localhost:0", "localhost", 0),
        ("[::1]:8080", "::1", 8080),
    ],
)
def test_an_address_is_read_as_host_and_port(written, host, port):
    assert units.parse_address(written) == Address(host, port)


UNREADABLE = {
    units.parse_duration: ["", "ten", "-1s", -1, True, None, [], "10 parsecs", "s", "nan", "inf", "1h-2m"],
    units.parse_size: ["", "MiB", "64iB", -1, True, None, "64 apples", "-3MiB", float("inf")],
    units.parse_rate: ["", "60/fortnight", "/s", "-1/s", -1, True, None],
    units.parse_fraction: [75, "175%", "-1%", True, None, "half", float("nan"), 1.01],
    units.parse_address: [8080, "8080", "host", "host:", "host:port", "host:70000", "a b:80", "::1:80", None],
}


@pytest.mark.parametrize(
    "parse, written",
    [(parse, written) for parse, all_written in UNREADABLE.items() for written in all_written],
)
def test_what_cannot_be_read_says_how_it_is_written(parse, written):
    with pytest.raises(ValueError, match=r"such as"):
        parse(written)


@given(seconds=st.floats(0, 1e9))
def test_a_duration_that_was_written_is_read_back(seconds):
    assert units.parse_duration(units.format_duration(seconds)) == seconds


@given(size=st.integers(0, 2**60))
def test_a_size_that_was_written_is_read_back(size):
    assert units.parse_size(units.format_size(size)) == size


@given(rate=st.floats(0, 1e9))
def test_a_rate_that_was_written_is_read_back(rate):
    assert units.parse_rate(units.format_rate(rate)) == rate


@given(fraction=st.floats(0, 1))
def test_a_fraction_that_was_written_is_read_back(fraction):
    assert units.parse_fraction(units.format_fraction(fraction)) == fraction


@given(host=st.sampled_from(["127.0.0.1", "0.0.0.0", "::1", "gpu-host.local"]), port=st.integers(0, 65_535))
def test_an_address_that_was_written_is_read_back(host, port):
    address = Address(host, port)
    assert units.parse_address(str(address)) == address


@pytest.mark.parametrize(
    "written, shown",
    [
        (units.format_duration(300), "5m"),
        (units.format_duration(0.25), "250ms"),
        (units.format_duration(5400), "90m"),
        (units.format_duration(0), "0s"),
        (units.format_size(64 * 2**20), "64MiB"),
        (units.format_size(1000), "1000B"),
        (units.format_rate(1.5), "1.5/s"),
        (units.format_fraction(0.75), "75%"),
        (units.format_fraction(0), "0%"),
    ],
)
def test_a_quantity_is_shown_in_its_shortest_exact_form(written, shown):
    assert written == shown
