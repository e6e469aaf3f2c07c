"""The configuration file: every problem in it at once, each with its place; then options for every part.

file ─ yaml_source ▶ Document (data with places) ─ schema, values ▶ FileSection ─ build ▶ Settings
                        └─ contradictions, complaints ▶ SettingsError with all problems
"""

from autoscaler.settings.load import load
from autoscaler.settings.model_server import model_server
from autoscaler.settings.settings import PoolSettings, ServerOptions, Settings
from autoscaler.settings.tenants_file import load_tenants

__all__ = ["PoolSettings", "ServerOptions", "Settings", "load", "load_tenants", "model_server"]
