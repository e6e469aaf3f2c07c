"""The model of a body is found where a parser finds it, and never anywhere else."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.proxy.json_member import STEPS_MAX, Missing, text_member

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["model", "a", 'q"', "\\"]), inner),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.sampled_from(["model", "messages", "x", 'm"odel', "model\\"]), JSON)


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ('{"model": "a"}', "a"),
        ('{"messages": [{"role": "user", "model": "b"}], "model":"a"}', "a"),
        ('{"x": "\\"model\\": \\"b\\"", "model" : "a"}', "a"),
        ('{"x": "model", "model": "org/name:tag"}', "org/name:tag"),
        ('{"x": ["model", "b"], "y": {"model": "c"}, "model": "\\u00fc\\n"}', "ü\n"),
        ('{"model": "a", "model": "b"}', "a"),
        ('  {"model":"a","x":', "a"),
        ('{"x": {"model": "b"}}', Missing.NOT_THERE),
        ("{}", Missing.NOT_THERE),
        ('{"model": 3}', Missing.NOT_TEXT),
        ('{"model": null}', Missing.NOT_TEXT),
        ('{"model": ["a"]}', Missing.NOT_TEXT),
        ('["model", "a"]', Missing.NOT_TEXT),
        ("model=a", Missing.NOT_TEXT),
        ('{"model": "\\ud800"}', Missing.NOT_TEXT),
        ("", Missing.NOT_YET),
        ('{"messages": [{"content": "long', Missing.NOT_YET),
        ('{"model": "a', Missing.NOT_YET),
        ('{"model":', Missing.NOT_YET),
        ('{"x": "\\', Missing.NOT_YET),
    ],
)
def test_the_member_is_that_of_the_outermost_object(body, found):
    assert text_member(body.encode(), "model") == found


@given(body=OBJECTS, indent=st.sampled_from([None, 2]), ascii_only=st.booleans())
def test_it_finds_what_a_parser_finds(body, indent, ascii_only):
    text = json.dumps(body, indent=indent, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    wanted = body.get("model", Missing.NOT_THERE)
    wanted = wanted if isinstance(wanted, str | Missing) else Missing.NOT_TEXT
    assert text_member(text, "model") == wanted


@given(body=OBJECTS, cut=st.integers(0, 400))
def test_of_a_beginning_it_says_the_same_or_not_yet(body, cut):
    text = json.dumps(body).encode()
    assert text_member(text[:cut], "model") in (text_member(text, "model"), Missing.NOT_YET)


def test_a_long_prompt_before_it_is_skipped_as_a_whole():
    body = json.dumps({"messages": [{"role": "user", "content": 'x\\" \n' * 50_000}], "model": "a"})
    assert text_member(body.encode(), "model") == "a"


def test_a_body_made_to_be_slow_is_given_up_on():
    assert text_member(b'{"x":' + b"[]" * STEPS_MAX + b',"model":"a"}', "model") is Missing.TOO_DEEP
