"""Errors of the edges. The core raises `ValueError` for a broken contract, nothing else.

    AutoscalerError                anything this program says on purpose; its text is for a person
    ├── UsageError                 the user can mend it: exit code 2
    │   ├── SettingsError          the configuration file, every problem in it at once
    │   ├── HistoryLocked          another instance works on the same history file
    │   └── PortTaken              somebody else listens there
    └── PlatformUnavailable        the platform cannot be asked, or refuses; the controller holds
        └── ReplicaFailed          a replica could not be started
"""


class AutoscalerError(Exception):
    """Root of all errors that this program raises on purpose."""


class UsageError(AutoscalerError):
    """The user asked for something impossible and can mend it; the program ends with exit code 2."""


class SettingsError(UsageError):
    """The configuration file has problems; the text names each with its place."""


class HistoryLocked(UsageError):
    """The history file is in use by another instance."""


class PortTaken(UsageError):
    """A listening address is in use."""


class PlatformUnavailable(AutoscalerError):
    """The platform cannot be asked, or refuses."""


class ReplicaFailed(PlatformUnavailable):
    """A replica could not be started."""
