"""However much is wrong with a section, all of it is told at once, each with its place."""

import re
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from autoscaler.errors import Problem, SettingsError
from autoscaler.settings import load
from autoscaler.settings.document import Document, KeyPath, dotted
from autoscaler.settings.schema import FileSection
from autoscaler.settings.section import sections_in
from autoscaler.settings.yaml_source import read
from tests.settings.transcript import CASES

REFERENCE = Path(__file__).parents[2] / "deploy" / "examples" / "reference.yaml"
RIGHT = read(REFERENCE, {})
SECTIONS = dict(sections_in(FileSection, RIGHT))
WRONG = [["in a list"], "in a list"]
"""What no key may be."""


def told_of(data, folder: Path) -> tuple[Document, list[Problem]]:
    """Write `data` with one value a line, and return what is said of it."""
    file = folder / "f.yaml"
    file.write_text(yaml.safe_dump(data, sort_keys=False, width=1000), "utf-8")
    document = read(file, {})
    try:
        load(file, {})
    except SettingsError as error:
        return document, list(error.problems)
    return document, []


def copy(data):
    if isinstance(data, dict):
        return {key: copy(value) for key, value in data.items()}
    return list(map(copy, data)) if isinstance(data, list) else data


def at(data, path: KeyPath):
    for step in path:
        data = data[step]
    return data


def keys_of(path: KeyPath) -> list[str]:
    """Return the keys of the section at `path` that may be wrong by themselves."""
    return [key for key in SECTIONS[path].model_fields if key != "kind" and key in (RIGHT.at(path) or ())]


def is_told(path: KeyPath, document: Document, problems: list[Problem]) -> bool:
    """Whether there is a problem with `path`, or something in it, that stands in its line."""
    lines = {place.line for below, place in document.value_places.items() if below[: len(path)] == path}
    if key := document.key_places.get(path):
        lines.add(key.line)
    name = dotted(path)
    return any(
        problem.key == name or problem.key.startswith((f"{name}.", f"{name}["))
        for problem in problems
        if problem.line in lines
    )


def name_of(path: KeyPath) -> str:
    return dotted(path) or "top"


@pytest.mark.parametrize("path", SECTIONS, ids=name_of)
def test_every_value_of_a_section_may_be_wrong_at_once(path, tmp_path):
    data = copy(RIGHT.data)
    section, keys = at(data, path), keys_of(path)
    for key in keys:
        section[key] = WRONG
    section["nonsense"] = 1
    document, problems = told_of(data, tmp_path)
    untold = [key for key in (*keys, "nonsense") if not is_told((*path, key), document, problems)]
    assert untold == []


def mistakes_in(path: KeyPath) -> dict[str, str]:
    """Return the ways in which keys of the section at `path` can be wrong: `key way`, and the key."""
    section, keys = SECTIONS[path], keys_of(path)
    ways = {f"{key} wrong": key for key in keys} | {"nonsense unknown": "nonsense"}
    ways |= {f"{key} missing": key for key in keys if section.model_fields[key].is_required()}
    return ways | ({"kind unknown": "kind"} if "kind" in section.model_fields else {})


def make(section: dict, key: str, way: str) -> None:
    if way == "missing":
        del section[key]
    else:
        section[key] = WRONG if way == "wrong" else "of no known kind" if key == "kind" else 1


@settings(max_examples=80)
@given(data=st.data())
def test_two_mistakes_in_one_section_are_both_told(data, tmp_path_factory):
    path = data.draw(st.sampled_from(sorted(SECTIONS, key=name_of)))
    whole, ways = copy(RIGHT.data), mistakes_in(path)
    two = st.lists(st.sampled_from(sorted(ways)), min_size=2, max_size=2, unique_by=lambda way: ways[way])
    chosen = data.draw(two) if len(set(ways.values())) > 1 else list(ways)
    for each in chosen:
        make(at(whole, path), *each.split())
    document, problems = told_of(whole, tmp_path_factory.getbasetemp())
    dark = "kind unknown" in chosen  # nobody knows what a section of no known kind needs
    for key, way in (each.split() for each in chosen):
        if way == "missing":
            assert dark or dotted((*path, key)) in [problem.key for problem in problems]
        else:
            assert is_told((*path, key), document, problems), [str(problem) for problem in problems]


def contradictions() -> list:
    """Return the files of the transcript that can be written anew, with a mistake more."""
    found = []
    for name, text, _ in CASES:
        try:
            data = yaml.load(text, yaml.BaseLoader)
        except yaml.YAMLError:
            continue
        if isinstance(data, dict) and not re.search(r"[$&!]|<<", text):
            found.append(pytest.param(yaml.safe_load(text), id=name))
    return found


@pytest.mark.parametrize("data", contradictions())
def test_a_mistake_hides_nothing_that_does_not_go_together_elsewhere(data, tmp_path):
    document, before = told_of(data, tmp_path)
    for path, _ in list(sections_in(FileSection, document)):
        if not isinstance(document.at(path), dict):
            continue
        with_nonsense = copy(document.data)
        at(with_nonsense, path)["nonsense"] = 1
        _, after = told_of(with_nonsense, tmp_path)
        said = {(problem.key, problem.fault) for problem in after}
        assert {(problem.key, problem.fault) for problem in before} - said == set(), path
        assert dotted((*path, "nonsense")) in {key for key, _ in said}


def test_a_server_needs_no_kind_if_it_is_of_the_usual_one(tmp_path):
    platform = {"kind": "static", "urls": ["http://127.0.0.1:9001"]}
    data = {"pools": {"a": {"server": {"ready_path": "/up"}, "platform": platform}}}
    assert told_of(data, tmp_path)[1] == []
