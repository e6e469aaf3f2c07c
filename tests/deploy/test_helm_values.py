"""The values of the Helm chart: all explained, and held against their schema; Helm is not needed for it."""

import json
import re

import jsonschema
import pytest
import yaml

from tests.deploy.manifests import DEPLOY

CHART = DEPLOY / "helm" / "inference-autoscaler"
VALUES = yaml.safe_load((CHART / "values.yaml").read_text("utf-8"))
SCHEMA = json.loads((CHART / "values.schema.json").read_text("utf-8"))
DOCS = (DEPLOY.parent / "docs" / "deploy.md").read_text("utf-8")
FREE = {
    "config",
    "controllers.resources",
    "global",
    "pools",
    "proxies.resources",
    "resources",
    "sidecars.resources",
}
"""Keys whose content the chart does not know."""


def keys(values, above=""):
    """Yield the dotted keys of values, leaves only."""
    for key, value in values.items():
        dotted = f"{above}{key}"
        if isinstance(value, dict) and value and dotted not in FREE and "labels" not in dotted:
            yield from keys(value, f"{dotted}.")
        else:
            yield dotted


def schema_keys(schema, above=""):
    for key, value in schema["properties"].items():
        if value.get("properties") and f"{above}{key}" not in FREE:
            yield from schema_keys(value, f"{above}{key}.")
        elif f"{above}{key}" != "global":
            yield f"{above}{key}"


def test_the_defaults_are_allowed():
    jsonschema.Draft7Validator.check_schema(SCHEMA)
    jsonschema.validate(VALUES, SCHEMA)


def test_the_schema_knows_the_values_and_no_others():
    assert sorted(schema_keys(SCHEMA)) == sorted(keys(VALUES))


@pytest.mark.parametrize("key", list(keys(VALUES)))
def test_a_value_is_explained(key):
    assert re.search(rf"^\\| `{re.escape(key)}`", DOCS, re.MULTILINE)
