"""Formulas are quick, machines may be busy: no example of a property test has a deadline here."""

from hypothesis import settings

settings.register_profile("no deadline")
settings.load_profile("no deadline")
