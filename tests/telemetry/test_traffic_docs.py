"""Every example in docs/traffic.md is read as that page says."""

import re
from pathlib import Path

import numpy as np
import pytest

from autoscaler.telemetry.traffic import read_traffic
from tests.telemetry.traffic_examples import written

PAGE = Path(__file__).parents[2] / "docs" / "traffic.md"

FORMS = {
    "Access logs of Apache, nginx and Traefik": ("access log", [1.25] * 5),
    "Envoy and Istio": ("Envoy access log", [0.226, 1.5]),
    "HAProxy": ("HAProxy log", [0.099]),
    "JSON": ("JSON lines", [0.25, np.nan, 0.25, 1.5, np.nan]),
    "CSV of requests": ("CSV of requests", [1.5]),
    "CSV of counts": ("CSV of counts", None),
    "OpenAI usage": ("OpenAI usage", None),
}


def examples(heading: str) -> list[str]:
    section = PAGE.read_text(encoding="utf-8").split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return re.findall(r"```\n(.*?)\n```", section, re.DOTALL)


@pytest.mark.parametrize("heading", FORMS)
def test_an_example_is_what_the_page_says(tmp_path, heading):
    form, seconds = FORMS[heading]
    (example,) = examples(heading)
    lines = example.replace(", …}", "}").splitlines()
    if form.startswith("CSV"):
        told = [read_traffic(written(tmp_path / "f", *lines))]
    else:
        told = [read_traffic(written(tmp_path / "f", line)) for line in lines]
    assert {each.form for each in told} == {form}
    assert sum(each.unusable for each in told) == 0
    if seconds is not None:
        found = [second for each in told for second in each.demand.service_times.tolist()]
        assert found == pytest.approx(seconds, nan_ok=True)


def test_every_form_has_a_section():
    headings = re.findall(r"^## (.*)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert set(FORMS) | {"A saved answer of Prometheus", "What is done with every file"} == set(headings)
