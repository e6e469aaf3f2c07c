"""Values that are names in systems of others: objects of Kubernetes, labels of Prometheus."""

import re
from dataclasses import dataclass
from typing import Any

from autoscaler.platforms.kubernetes.names import API_VERSION, OBJECT_NAME
from autoscaler.settings.values.kind import Kind, not_allowed
from autoscaler.settings.values.words import Text

_PORT_MAX = 65_535
_PORT_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_QUOTED = r""" "(?:[^"\\\n]|\\.)*" | '(?:[^'\\\n]|\\.)*' | `[^`\n]*` """
_MATCHER = rf"[A-Za-z_]\w* \s* (?: =~ | !~ | != | = ) \s* (?: {_QUOTED} )"
_MATCHERS = re.compile(rf"\s* (?: {_MATCHER} (?: \s*,\s* {_MATCHER} )* \s*,?\s* )?", re.VERBOSE)
_UNQUOTED = re.compile(r"""(=~?)\s*["']?([\w.:/-]+)["']?\s*(?=,|$)""")


@dataclass(frozen=True, slots=True)
class ObjectName(Kind):
    """The name of an object in Kubernetes."""

    def read(self, given: Any) -> str:
        text = Text().read(given)
        if not OBJECT_NAME.fullmatch(text):
            remedy = f"did you mean {text.lower()}?" if OBJECT_NAME.fullmatch(text.lower()) else ""
            raise not_allowed("a name in Kubernetes, of a-z, 0-9, - and .", remedy)
        return text


@dataclass(frozen=True, slots=True)
class ApiVersion(Kind):
    """An API group of Kubernetes with its version."""

    def read(self, given: Any) -> str:
        if not isinstance(given, str) or not API_VERSION.fullmatch(given):
            raise not_allowed("an API version such as apps/v1")
        return given


@dataclass(frozen=True, slots=True)
class PortName(Kind):
    """A port of a Service, by name or number; as text."""

    def read(self, given: Any) -> str:
        text = Text().read(given)
        is_number = re.fullmatch(r"[0-9]+", text)
        if not (1 <= int(text[:9]) <= _PORT_MAX if is_number else _PORT_NAME.fullmatch(text)):
            raise not_allowed("the name of a port such as admin, or its number, 1 to 65535")
        return text


@dataclass(frozen=True, slots=True)
class Labels(Kind):
    """Matchers of labels as PromQL has them between its braces; may be none at all."""

    def read(self, given: Any) -> str:
        text = Text(least=0).read(given)
        if not _MATCHERS.fullmatch(text):
            meant = _as_meant(text)
            remedy = f"did you mean {meant}?" if _MATCHERS.fullmatch(meant) else ""
            raise not_allowed('labels such as job="chat",namespace=~"prod.*", their values in quotes', remedy)
        return text


def _as_meant(text: str) -> str:
    """Return labels without the braces around them, and their values in quotes."""
    return _UNQUOTED.sub(r'\1"\2"', text.strip().removeprefix("{").removesuffix("}").strip())
