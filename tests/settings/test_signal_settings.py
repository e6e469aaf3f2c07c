"""Signals in the configuration: presets, metrics of one's own, and what does not go together."""

import pytest

from autoscaler.errors import SettingsError
from autoscaler.settings import load
from autoscaler.telemetry.scrape.presets import PRESETS
from autoscaler.telemetry.scrape.source import AddUp, Follows, Kind, SignalSource, Unit
from autoscaler.telemetry.signal_watch import SignalOptions


def loaded(tmp_path, signals):
    file = tmp_path / "config.yaml"
    file.write_text(
        f"pools: {{chat: {{signals: {signals}, platform: {{kind: static, urls: ['http://127.0.0.1:1']}}}}}}\n"
    )
    return load(file, {}).pools["chat"].signals


def test_a_preset_without_addresses_asks_the_replicas(tmp_path):
    assert loaded(tmp_path, "{engine: {preset: vllm}}") == (SignalOptions("engine", PRESETS["vllm"]),)


def test_a_metric_of_ones_own_is_described(tmp_path):
    described = "metric: m, unit: percent, add_up: mean, follows: occupancy, labels: {gpu: '0'}"
    (options,) = loaded(tmp_path, f"{{mine: {{{described}, urls: ['http://127.0.0.1:9/x']}}}}")
    share = SignalSource("m", ("m",), Kind.GAUGE, Unit.PERCENT, AddUp.MEAN, Follows.OCCUPANCY, {"gpu": "0"})
    assert options == SignalOptions("mine", (share,), ("http://127.0.0.1:9/x",))


@pytest.mark.parametrize(
    "signals, words",
    [
        ("{mine: {}}", "give preset, or metric"),
        ("{mine: {preset: vllm, metric: m}}", "give one of them"),
        ("{mine: {preset: vllm, unit: percent}}", "a preset knows its metrics"),
        (
            "{mine: {metric: m, type: counter, unit: percent}}",
            "got percent, and a counter cannot count in it",
        ),
        ("{mine: {preset: vlm}}", "did you mean vllm?"),
    ],
)
def test_what_does_not_go_together_is_told_with_its_place(tmp_path, signals, words):
    with pytest.raises(SettingsError) as told:
        loaded(tmp_path, signals)
    assert words in str(told.value)
    assert "pools.chat.signals.mine" in str(told.value)
