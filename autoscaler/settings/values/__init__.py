"""The kinds of value that a setting can have: how each is written, and what is allowed.

They annotate the fields of `schema`: `Annotated[float, Duration(least=0.1)]` is written `10s` and read
as 10.0.
"""

from autoscaler.settings.values.addresses import GrpcPortKind, Listening, Url, UrlPath, WebAddress
from autoscaler.settings.values.kind import (
    NOT_ALLOWED,
    Kind,
    OrAuto,
    OrNone,
    closest,
    did_you_mean,
    not_allowed,
)
from autoscaler.settings.values.names import ApiVersion, Labels, ObjectName, PortName
from autoscaler.settings.values.quantities import Count, Duration, Fraction, Number, Rate, Share, Size
from autoscaler.settings.values.words import Choice, Command, FilePath, HeaderName, Switch, Text, YesNo

__all__ = [
    "NOT_ALLOWED",
    "ApiVersion",
    "Choice",
    "Command",
    "Count",
    "Duration",
    "FilePath",
    "Fraction",
    "GrpcPortKind",
    "HeaderName",
    "Kind",
    "Labels",
    "Listening",
    "Number",
    "ObjectName",
    "OrAuto",
    "OrNone",
    "PortName",
    "Rate",
    "Share",
    "Size",
    "Switch",
    "Text",
    "Url",
    "UrlPath",
    "WebAddress",
    "YesNo",
    "closest",
    "did_you_mean",
    "not_allowed",
]
