"""Kinds of value whose form is somebody else's: what they take, and what is said of what they do not."""

import pytest
from pydantic_core import PydanticCustomError

from autoscaler.settings.values import FilePath, Labels, ObjectName, PortName, Url


def refusal(kind, given) -> dict:
    with pytest.raises(PydanticCustomError) as caught:
        kind.read(given)
    return caught.value.context


@pytest.mark.parametrize(
    "labels",
    [
        "",
        'job="chat"',
        "job='chat'",
        "job=`chat`",
        'a=~"x|y", b!~"z",c!="",',
        'path="a\\"b,}{"',
        ' job = "chat" ',
    ],
)
def test_labels_are_taken_as_promql_has_them(labels):
    assert Labels().read(labels) == labels


@pytest.mark.parametrize(
    "labels, remedy",
    [
        ('job="chat', 'did you mean job="chat"?'),
        ("job=chat,zone=a", 'did you mean job="chat",zone="a"?'),
        ('{job="chat"}', 'did you mean job="chat"?'),
        ('job="chat"}', 'did you mean job="chat"?'),
        ('job=="chat"', ""),
        ('job="chat" zone="a"', ""),
        ('job="a\nb"', ""),
        ("chat", ""),
        ("sum(x)", ""),
    ],
)
def test_labels_that_promql_would_refuse_are_refused_here(labels, remedy):
    assert refusal(Labels(), labels)["remedy"] == remedy


@pytest.mark.parametrize("port", ["admin", "8082", 8082, "a-1"])
def test_a_port_of_a_service_is_a_name_or_a_number(port):
    assert PortName().read(port) == str(port)


@pytest.mark.parametrize("port", [0, 65_536, "Admin", "a_b", "-a", "9" * 30, 80.5, True])
def test_what_is_no_port_of_a_service_is_refused(port):
    refusal(PortName(), port)


@pytest.mark.parametrize("path", ["folder/", "/", ".", "..", "a/..", ""])
def test_a_folder_is_no_file(path):
    refusal(FilePath(), path)


def test_a_name_that_is_wrong_by_its_capitals_only_is_mended():
    assert refusal(ObjectName(), "Chat-1")["remedy"] == "did you mean chat-1?"


@pytest.mark.parametrize("url", ["http://me:secret@h:1", "http://me@h", "https://:secret@h/"])
def test_a_password_in_a_url_is_refused_and_not_shown(url):
    assert refusal(Url(), url)["secret"]
