"""What names of objects in a cluster look like."""

import re

OBJECT_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
API_VERSION = re.compile(r"([a-z0-9.-]+/)?v[a-z0-9]+")
"""A DNS subdomain, near enough to tell a slip of the pen from a name."""
