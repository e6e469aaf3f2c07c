"""What belongs to all tests."""

collect_ignore = ["fakes"]
"""Fakes hold no tests, and their doctests would be looked for under names that the standard library has."""
