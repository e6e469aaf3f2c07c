"""Whatever a file holds, it becomes settings or a list of problems, never anything else."""

from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from autoscaler.errors import SettingsError
from autoscaler.settings import Settings, load

REFERENCE = (Path(__file__).parents[2] / "deploy" / "examples" / "reference.yaml").read_text("utf-8")
PLAIN = "\n".join(
    line for line in REFERENCE.splitlines() if line.strip() and not line.lstrip().startswith("#")
)
MARKS = [
    "",
    " ",
    "\n",
    "\t",
    ":",
    "- ",
    "? ",
    "{",
    "}",
    "[",
    "]",
    "'",
    '"',
    "|\n",
    "&a ",
    "*a",
    "<<: *a",
    "!!int ",
]
VALUES = [
    "${X}",
    "${X:-y}",
    "1e999",
    "-1",
    "none",
    "null",
    "0x1f",
    "1:30",
    "true",
    "[]",
    "{}",
    "[[]]",
    "9" * 5000,
]


def read(text: str, folder: Path) -> Settings | SettingsError:
    file = folder / "f.yaml"
    file.write_text(text, "utf-8", errors="surrogatepass")
    try:
        return load(file, {"X": "7"})
    except SettingsError as error:
        return error


@settings(max_examples=100)
@given(data=st.data())
def test_a_damaged_file_becomes_settings_or_problems(data, tmp_path_factory):
    text = PLAIN
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(start, min(len(text), start + 12)))
        text = text[:start] + data.draw(st.sampled_from(MARKS + VALUES)) + text[end:]
    result = read(text, tmp_path_factory.getbasetemp())
    assert isinstance(result, Settings) or result.problems


@settings(max_examples=50)
@given(text=st.text())
def test_any_text_becomes_problems(text, tmp_path_factory):
    result = read(text, tmp_path_factory.getbasetemp())
    assert isinstance(result, SettingsError)
    assert result.problems
