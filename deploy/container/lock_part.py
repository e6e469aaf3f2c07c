"""Prints a part of requirements.lock, hashes included: what the product needs, or what a name asks for.

    python lock_part.py requirements.lock --dependencies-of pyproject.toml    what the installed product needs
    python lock_part.py requirements.lock --named setuptools                  these packages and no others

The lock holds all that the repository needs, tools and tests included; an image needs about half of it,
and pip is asked which half, with every version held to that of the lock. What it answers is cut out of the
lock, so that `pip install --require-hashes` installs the very files that were locked.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

_ENTRY = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)==(?P<version>\S+)(?P<marker>[^\\\n]*)")


def entries(lock: str) -> list[tuple[str, str, str]]:
    """Return the entries of a lock: normal name, requirement with its marker, whole text."""
    found = []
    for text in re.split(r"\n(?=[A-Za-z0-9])", lock.strip()):
        entry = _ENTRY.match(text)
        if entry is None:
            sys.exit(f"the lock has an entry that is no `name==version`: {text.splitlines()[0]!r}")
        found.append((normal(entry["name"]), entry[0].strip(), text))
    return found


def normal(name: str) -> str:
    """Return a package's name as indexes compare them."""
    return re.sub(r"[-_.]+", "-", name).lower()


def part(lock: str, names: set[str]) -> str:
    """Return the entries of these packages. Ends the program if one is not in the lock."""
    locked = entries(lock)
    if missing := names - {name for name, _, _ in locked}:
        sys.exit(f"not in the lock: {', '.join(sorted(missing))}; lock it first (make lock)")
    return "\n".join(text for name, _, text in locked if name in names) + "\n"


def needed(lock: str, dependencies: list[str]) -> set[str]:
    """Return the names of all that `dependencies` need on this machine, themselves included; asks pip."""
    with tempfile.TemporaryDirectory() as folder:
        constraints = Path(folder) / "constraints.txt"
        constraints.write_text("".join(f"{requirement}\n" for _, requirement, _ in entries(lock)))
        ask = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--quiet"]
        ask += [
            "--disable-pip-version-check",
            "--report",
            "-",
            "--constraint",
            str(constraints),
            *dependencies,
        ]
        said = subprocess.run(ask, check=True, stdout=subprocess.PIPE).stdout
    return {normal(each["metadata"]["name"]) for each in json.loads(said)["install"]}


def main() -> None:
    """Print the part that was asked for."""
    parser = argparse.ArgumentParser(description="Prints a part of a lock.")
    parser.add_argument("lock", type=Path)
    wanted = parser.add_mutually_exclusive_group(required=True)
    wanted.add_argument("--dependencies-of", type=Path, metavar="PYPROJECT")
    wanted.add_argument("--named", nargs="+", metavar="PACKAGE")
    arguments = parser.parse_args()
    lock = arguments.lock.read_text("utf-8")
    if arguments.named:
        names = {normal(name) for name in arguments.named}
    else:
        project = tomllib.loads(arguments.dependencies_of.read_text("utf-8"))["project"]
        names = needed(lock, project["dependencies"])
    sys.stdout.write(part(lock, names))


if __name__ == "__main__":
    main()
