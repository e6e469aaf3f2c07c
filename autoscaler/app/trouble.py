"""What is wrong with the platform of a pool."""

from autoscaler.control_loop import ControlLoop
from autoscaler.ports import Platform, TellsTrouble


def platform_trouble(control: ControlLoop, platform: Platform) -> dict[str, str]:
    """Say why it could not be asked, refused, or cannot do what it was asked for; nothing if all is well."""
    why = control.trouble or (platform.last_error if isinstance(platform, TellsTrouble) else None)
    return {} if why is None else {"platform": why}
