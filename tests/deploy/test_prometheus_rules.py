"""The alerts and the dashboard that ship: every expression is one, and asks for nothing that there is not."""

import json
import re
import subprocess

import pytest
import yaml

from autoscaler.domain import Decision, Hold, Outcome, TokenUse
from autoscaler.domain.decision import Binding, Reason
from autoscaler.proxy.tenants.counts import TenantCounts
from autoscaler.telemetry.exposition import Metrics
from autoscaler.telemetry.gpu_metrics import gpu_metrics
from autoscaler.telemetry.gpu_reading import GpuReading, Throttle
from autoscaler.telemetry.ledger_watch import ledger_metrics
from autoscaler.telemetry.signal_metrics import signal_metrics
from prometheus_client.parser import text_string_to_metric_families
from tests.deploy.dashboard_queries import (
    OF_GPUS,
    OF_LANGUAGE_MODELS,
    OF_SOME_CONFIGURATIONS,
    RULES,
    RULES_TEST,
    dashboard,
    panels,
    queries,
)
from tests.fakes.prometheus_server import ABSENT, installed
from tests.telemetry.status_examples import a_status

_METRIC = re.compile(r"\b(?:pool:)?autoscaler_\w+(?::\w+)?")
_LABELS = re.compile(r"\b(autoscaler_\w+)\{([^}]*)\}")
needs_promtool = pytest.mark.skipif(not installed(), reason=ABSENT)
