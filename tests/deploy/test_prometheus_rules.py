"""The alerts and the dashboard that ship: every expression is one, and asks for nothing that there is not."""

import json
import re
import subprocess

import pytest
import yaml

from tests.deploy.dashboard_queries import (
    OF_CONTROLLERS,
    OF_GPUS,
    OF_LANGUAGE_MODELS,
    OF_SOME_CONFIGURATIONS,
    RULES,
    RULES_TEST,
    dashboard,
    panels,
    queries,
)
from tests.deploy.everything_exported import everything_exported
from tests.fakes.prometheus_server import ABSENT, installed

_NAME = re.compile(r"\b(?:pool:)?autoscaler_\w+(?::\w+)?")
_SELECTOR = re.compile(r"\b(autoscaler_\w+)\{([^}]*)\}")
_MATCHER = re.compile(r'(\w+)(=~|!=|!~|=)"([^"]*)"')
_BY = re.compile(r"\b(?:by|without|on)\s*\(([^)]*)\)")
OF_THE_SCRAPE = {"job", "instance", "namespace"}
needs_promtool = pytest.mark.skipif(not installed(), reason=ABSENT)

DOCS = (RULES.parents[2] / "docs" / "deploy.md").read_text("utf-8")
GROUPS = yaml.safe_load(RULES.read_text("utf-8"))["groups"]
EVERY_RULE = [rule for group in GROUPS for rule in group["rules"]]
ALERTS = {rule["alert"]: rule for rule in EVERY_RULE if "alert" in rule}
RECORDED = {rule["record"] for rule in EVERY_RULE if "record" in rule}
EXPRESSIONS = {
    **{rule.get("alert") or rule["record"]: rule["expr"] for rule in EVERY_RULE},
    **{f"{query.panel}: {query.legend}": query.text for query in queries()},
}


@pytest.fixture(scope="module")
def exported():
    return everything_exported()


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_an_expression_names_only_metrics_that_there_are(name, exported):
    named = set(_NAME.findall(EXPRESSIONS[name]))
    assert named or name == "Waiting time against the objective: objective"
    assert named <= exported.keys() | RECORDED


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_an_expression_selects_by_labels_and_values_that_there_are(name, exported):
    for metric, selector in _SELECTOR.findall(EXPRESSIONS[name]):
        for label, _, value in _MATCHER.findall(selector):
            if label in OF_THE_SCRAPE:
                continue
            assert label in exported[metric]
            if value != ".+":
                assert set(value.split("|")) <= exported[metric][label]


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_an_expression_groups_by_labels_that_there_are(name, exported):
    named = _NAME.findall(EXPRESSIONS[name])
    there = OF_THE_SCRAPE | {"pool"} | {label for metric in named for label in exported.get(metric, ())}
    grouped = {label.strip() for labels in _BY.findall(EXPRESSIONS[name]) for label in labels.split(",")}
    assert grouped - {""} <= there


@pytest.mark.parametrize("name", ALERTS)
def test_an_alert_says_what_is_seen_and_what_to_do(name):
    alert = ALERTS[name]
    assert alert["labels"]["severity"] in ("page", "ticket")
    assert alert["annotations"].keys() == {"summary", "description", "remedy"}


def test_every_alert_stands_in_the_documentation():
    documented = set(re.findall(r"Autoscaler[A-Z]\w+", DOCS))
    assert documented == ALERTS.keys()


def test_an_alert_names_others_that_there_are():
    named = set(re.findall(r"Autoscaler[A-Z]\w+", RULES.read_text("utf-8")))
    assert named == ALERTS.keys()


@pytest.mark.parametrize(
    "job", ["inference-autoscaler", "models/inference-autoscaler", "x-inference-autoscaler"]
)
def test_the_alert_for_what_is_down_knows_our_jobs_and_those_of_no_other_autoscaler(job):
    (ours,) = re.findall(r'job=~"([^"]*)"', ALERTS["AutoscalerDown"]["expr"])
    assert re.fullmatch(ours, job)
    for other in (
        "cluster-autoscaler",
        "kube-system/cluster-autoscaler",
        "autoscaler",
        "vertical-pod-autoscaler",
    ):
        assert not re.fullmatch(ours, other)


def test_every_alert_is_tested_to_come():
    tests = [
        case
        for test in yaml.safe_load(RULES_TEST.read_text("utf-8"))["tests"]
        for case in test.get("alert_rule_test", [])
    ]
    assert {case["alertname"] for case in tests if case["exp_alerts"]} == ALERTS.keys()


@needs_promtool
def test_the_tests_of_the_rules_pass():
    run = subprocess.run(
        ["promtool", "test", "rules", RULES_TEST.name],
        cwd=RULES_TEST.parent,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr


@needs_promtool
def test_every_query_of_the_dashboard_is_one(tmp_path):
    rules = [{"record": f"panel:{number}", "expr": query.text} for number, query in enumerate(queries())]
    file = tmp_path / "queries.yaml"
    file.write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))
    run = subprocess.run(
        ["promtool", "check", "rules", str(file)], capture_output=True, text=True, timeout=60, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr


def test_every_query_of_the_dashboard_asks_for_the_chosen_namespaces_only():
    for text in asked_by_grafana():
        kept = re.sub(r"\bon \([^)]*\) autoscaler_\w+(?![\w{])", "", text)  # only takes others out
        metrics = re.findall(r"\bautoscaler_\w+", kept)
        assert len(re.findall(r'\bautoscaler_\w+\{[^}]*namespace=~"\$namespace"', kept)) == len(metrics), text
    variables = {each["name"]: each for each in dashboard()["templating"]["list"]}
    assert variables["namespace"]["allValue"] == ".*"  # without Kubernetes there is none
    assert "$namespace" in variables["pool"]["query"]["query"]


def asked_by_grafana():
    """Return every expression with its variables in it."""
    asked = [target["expr"] for panel in panels() for target in panel["targets"]]
    return asked + [each["expr"] for each in dashboard()["annotations"]["list"]]


def test_every_panel_has_a_title_of_its_own_and_says_what_it_shows():
    titles = [panel["title"] for panel in panels()]
    assert len(set(titles)) == len(titles)
    assert all(panel["description"] and panel["fieldConfig"]["defaults"]["unit"] for panel in panels())
    assert set(titles) >= OF_GPUS | OF_LANGUAGE_MODELS | OF_SOME_CONFIGURATIONS | OF_CONTROLLERS


def test_panels_do_not_overlap():
    taken = set()
    for panel in panels():
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        assert place["x"] + place["w"] <= 24
        taken |= cells
