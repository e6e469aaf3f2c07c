"""Examples take longer on a busy machine, and are not wrong for that."""

from hypothesis import settings

settings.register_profile("dispatch")
settings.load_profile("dispatch")
