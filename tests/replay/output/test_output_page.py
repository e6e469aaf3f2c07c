"""The page: everything on it, nothing from outside; and the same as data and as a picture."""

import json
import re
from html.parser import HTMLParser

import pytest

from autoscaler.replay.output.page import page_of, write_page
from autoscaler.replay.output.picture_png import write_png
from autoscaler.replay.output.plain import outcome_as_plain
from autoscaler.replay.output.traffic_told import Told
from autoscaler.replay.output.words import Price
from tests.fakes.replay_outcome import outcome_of, played

TOLD = Told("access.log", "access log", ("Durations are taken as seconds.",), "Europe/Berlin")
# What `--json` promises of each policy.
PROMISED = {
    "gpu_hours",
    "busy_gpu_hours",
    "utilization",
    "wait_p50",
    "wait_p95",
    "wait_p99",
    "objective_met",
    "bad_windows",
    "time_in_band",
    "scale_ups",
    "scale_downs",
    "clairvoyant_gpu_hours",
}


class Seen(HTMLParser):
    """What a reader sees, and what a browser would fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.text, self.fetched, self._hidden = [], [], 0

    def handle_starttag(self, tag, attrs):
        self._hidden += tag in ("script", "style")
        self.fetched += [value for name, value in attrs if name in ("src", "href")]

    def handle_endtag(self, tag):
        self._hidden -= tag in ("script", "style")

    def handle_data(self, data):
        if not self._hidden:
            self.text.append(data)


def seen(page: str) -> Seen:
    reader = Seen()
    reader.feed(page)
    return reader


def some_outcome():
    return outcome_of(
        played(gpu_hours=30.0),
        played("fixed", gpu_hours=60.0),
        played("hpa", 0.8, gpu_hours=27.0, bad_windows=0.031),
        played("hpa", 0.6, tried=True, gpu_hours=33.0),
        price=Price(2.0, "$"),
    )


@pytest.fixture(scope="module")
def page() -> str:
    return page_of(some_outcome(), TOLD)


def test_the_page_says_the_verdict_the_costs_and_what_to_configure(page):
    text = " ".join(" ".join(seen(page).text).split()).replace("\u00a0", " ")
    for part in (
        "autoscaler meets the objective (99 % start within 5 s) at 1.50 × the clairvoyant bound, for $60.00.",
        "50 % less than a fleet for the peak (fixed)",
        "hpa 0.80 missed",
        "tuned in hindsight",
        "Every target that was tried",
        "replicas_max: 30",
        "Durations are taken as seconds.",
        "What a replay leaves out",
    ):
        assert part in text, part


def test_it_fetches_nothing(page):
    assert seen(page).fetched == []
    assert not re.search(r"@import|url\(\s*['\"]?http", page[: page.index("<script")])


def test_the_charts_are_of_one_time_with_everybody_in_the_legend(page):
    (layout,) = re.findall(r'"matches":"x\d?"', page)[:1]
    assert layout
    for name in ("demand", "autoscaler", "fixed", "hpa 0.80", "hpa 0.60"):
        assert f'"name":"{name}"' in page, name
    assert '"visible":"legendonly"' in page
    assert '"type":"log"' in page


def test_a_name_is_text_and_nothing_else():
    named = page_of(some_outcome(), Told("<script>alert(1)</script>.log", "<b>", ("a < b & c",), ""))
    assert "<script>alert(1)" not in named
    assert "a &lt; b &amp; c" in named


def test_without_ours_there_is_still_a_page():
    text = " ".join(seen(page_of(outcome_of(played("fixed"), missing=("autoscaler",)), TOLD)).text)
    assert "was not finished" in text


def test_page_and_picture_are_written(tmp_path):
    write_page(some_outcome(), TOLD, tmp_path / "p.html")
    write_png(some_outcome(), TOLD, tmp_path / "p.png")
    assert (tmp_path / "p.html").read_text("utf-8").startswith("<!doctype html>")
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")


def test_as_data_each_policy_has_what_is_promised():
    plain = json.loads(json.dumps(outcome_as_plain(some_outcome(), TOLD), allow_nan=False))
    assert [each["policy"] for each in plain["policies"]] == ["autoscaler", "fixed", "hpa 0.80", "hpa 0.60"]
    for each in plain["policies"]:
        assert each.keys() >= PROMISED
        assert isinstance(each["scale_ups"], int)
    ours, _, missing, tuned = plain["policies"]
    assert (ours["meets_objective"], missing["meets_objective"]) == (True, False)
    assert (ours["x_clairvoyant"], ours["cost"], ours["currency"]) == (1.5, 60.0, "$")
    assert tuned["tuned_in_hindsight"]
    assert plain["complete"] and "pools:" in plain["recommended"]["yaml"]
    assert "half_width_95" not in ours


def test_as_data_several_seeds_tell_their_confidence():
    outcome = outcome_of(played(seed=4, gpu_hours=29.0), played(seed=5, gpu_hours=31.0))
    (ours,) = outcome_as_plain(outcome, TOLD)["policies"]
    assert (ours["gpu_hours"], ours["seeds"]) == (30.0, [4, 5])
    assert ours["half_width_95"]["gpu_hours"] == pytest.approx(12.71, rel=1e-3)  # t of 1 degree: 12.71


def test_times_are_those_of_the_zone_or_hours_since_the_beginning():
    outcome = some_outcome()  # begins at 2026-03-02 00:00 UTC
    assert f"{TOLD.times(outcome)[1]:%Y-%m-%d %H:%M}" == "2026-03-02 01:05"
    assert f"{Told('a', 'b', (), 'UTC-04:00').times(outcome)[0]:%Y-%m-%d %H:%M}" == "2026-03-01 20:00"
    assert Told("a", "b").times(outcome)[12] == 1.0
