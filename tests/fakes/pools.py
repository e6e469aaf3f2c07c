"""One pool as the program makes it from its settings, without the program's listeners."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import yaml

from autoscaler.app.pool import Pool
from autoscaler.clock import SystemClock
from autoscaler.fit_process import FitProcesses
from autoscaler.settings import load
from autoscaler.telemetry.exposition import Metrics
from autoscaler.telemetry.history import History


@asynccontextmanager
async def a_pool(
    folder: Path, platform: dict[str, Any], mode: str = "act", **pool: Any
) -> AsyncIterator[Pool]:
    """Make the pool `chat`, which the test starts; it is stopped at the end."""
    file = folder / "config.yaml"
    plain = {
        "mode": mode,
        "history": str(folder / "history.db"),
        "control_interval": "100ms",
        "pools": {"chat": {**pool, "platform": platform}},
    }
    file.write_text(yaml.safe_dump(plain))
    settings = load(file, {})
    history = History(settings.history)
    made = None
    try:
        metrics = Metrics(("chat",), lambda: None)
        made = Pool(settings.pools["chat"], settings.control, history, metrics, SystemClock(), FitProcesses())
        yield made
    finally:
        if made is not None:
            await made.stop()
        history.close()
