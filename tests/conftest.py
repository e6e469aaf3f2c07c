"""What belongs to all tests."""

from hypothesis import settings

collect_ignore = ["fakes"]
"""Fakes hold no tests, and their doctests would be looked for under names that the standard library has."""

# The same examples each time, however slow the machine: whoever changes nothing sees nothing fail. Others are
# looked for with: pytest --hypothesis-profile=search
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.register_profile("search", max_examples=2000, deadline=None)
settings.load_profile("repeatable")
