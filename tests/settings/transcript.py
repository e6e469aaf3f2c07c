"""The cases of `problems.txt`: name, file, and the lines of the answer."""

import re
import textwrap
from pathlib import Path

TRANSCRIPT = Path(__file__).with_name("problems.txt").read_text("utf-8")
CASES = [
    (name, textwrap.dedent(file), answer.split("\n"))
    for name, file, answer in re.findall(
        r"^--- (.+)\n((?:(?:    |\t).*\n)+)\n((?:\S.*\n?)+)", TRANSCRIPT, re.MULTILINE
    )
]
