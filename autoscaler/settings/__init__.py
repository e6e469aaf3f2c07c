"""The configuration file: every problem in it at once, each with its place; then options for every part.

file ─ yaml_source ▶ Document (data with places) ─ schema, values ▶ FileSection ─ build ▶ Settings
                        └─ contradictions, complaints ▶ SettingsError with all problems
"""

from autoscaler.settings.load import load
from autoscaler.settings.model_server import model_server
from autoscaler.settings.settings import PoolSettings, ServerOptions, Settings

__all__ = ["PoolSettings", "ServerOptions", "Settings", "load", "model_server"]
