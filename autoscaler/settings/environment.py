"""`${NAME}` in a value: the environment variable NAME, which must be set.

`${NAME:-default}` has a default for one that is unset or empty; `$${` stands for `${` itself.
`${CONFIG_DIR}` is the folder of the configuration file, so that it can name its neighbours.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path

_REFERENCE = re.compile(
    r"\$\$\{|\$\{(?P<name>[A-Za-z_]\w*)(?::-(?P<default>[^}]*))?\}|\$\{[^}]*\}?", re.ASCII
)

Complain = Callable[[str, str, str], None]
"""Takes what is wrong: fault, what is allowed, remedy."""


def with_config_dir(environment: Mapping[str, str], file: Path) -> dict[str, str]:
    """Return `environment` with the folder of the configuration file in it."""
    return {**environment, "CONFIG_DIR": str(file.parent.resolve())}


def expand(text: str, environment: Mapping[str, str], complain: Complain) -> str:
    """Return `text` with its references replaced; what cannot be replaced is told to `complain`."""

    def replacement(reference: re.Match[str]) -> str:
        if reference[0] == "$${":
            return "${"
        name, default = reference["name"], reference["default"]
        if name is None:
            complain(f"got {reference[0]}", "${NAME} or ${NAME:-default}", "write $${ for a plain ${")
            return ""
        value = environment.get(name)
        if default is not None:
            return value or default
        if value is None:
            remedy = f"set {name}, or write ${{{name}:-default}}"
            complain(f"got {reference[0]}, which is not set in the environment", "", remedy)
            return ""
        return value

    return _REFERENCE.sub(replacement, text)
