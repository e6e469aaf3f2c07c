"""What the path of a request says: which model it is for, and whether it is no inference at all."""

import re

from autoscaler.telemetry.traffic.faults import LineUnusable

_MODEL = re.compile(r"/(?:models|deployments|engines)/([^/:?\s\"]+)(?=[/:])")
"""As in `/v1/models/NAME:predict`, `/v2/models/NAME/infer`, `/openai/deployments/NAME/chat/completions`."""
_PROBES = frozenset(
    {
        "/health",
        "/healthz",
        "/health/live",
        "/health/ready",
        "/livez",
        "/live",
        "/readyz",
        "/ready",
        "/ping",
        "/metrics",
        "/v2/health/live",
        "/v2/health/ready",
        "/grpc.health.v1.Health/Check",
    }
)
_PROBE = "a probe of health or metrics, which is no demand"


def model_asked(request: str) -> str:
    """Return the model that a request line, or a path alone, names; nothing if it names none.

    Raises LineUnusable if it is a probe: it takes no slot, and its length says nothing of the service.

    >>> model_asked("POST /v2/models/resnet50/versions/1/infer HTTP/1.1")
    'resnet50'
    """
    words = request.split(" ", 2)
    path = words[1] if len(words) > 1 else request
    if path.partition("?")[0] in _PROBES or (path.startswith("/v2/") and path.endswith("/ready")):
        raise LineUnusable(_PROBE)
    if "s/" not in path:  # most paths name none, and a search costs more
        return ""
    found = _MODEL.search(path)
    return found[1] if found else ""
