"""The configuration file: every problem in it at once, each with its place; then options for every part.

file ─ yaml_source ▶ Document (data with places) ─ schema, values ▶ FileSection ─ build ▶ Settings
                        └─ kinds, rules, contradictions, complaints ▶ SettingsError with all problems

A problem hides no other: `kinds` settles what a section is before anything in it is judged, and the rules of
a section (`Section.RULES`) look at it as it is `written`, not at what was found right.
"""

from autoscaler.settings.load import load
from autoscaler.settings.model_server import model_server
from autoscaler.settings.settings import PoolSettings, ServerOptions, Settings
from autoscaler.settings.tenants_file import load_tenants

__all__ = ["PoolSettings", "ServerOptions", "Settings", "load", "load_tenants", "model_server"]
