"""Platforms `local` over the tiny server, quick to probe and to restart."""

import sys
from pathlib import Path

import psutil

from autoscaler.model_servers.openai import OpenAI
from autoscaler.model_servers.plain_http import PlainHttp
from autoscaler.platforms.local_process import LocalOptions, LocalProcesses
from tests.fakes.replica_listener import FakeReplicaListener

TINY_SERVER = Path(__file__).with_name("tiny_server.py")


def tiny_command(*flags):
    """Isolated mode without `site`: half of the interpreter's start, and no path but its own."""
    return (sys.executable, "-I", "-S", str(TINY_SERVER), "--port", "{port}", *flags)


class Local:
    """Platforms of one test, each with a listener; all on one state folder, one after the other."""

    def __init__(self, state_dir):
        self.state_dir = state_dir
        self._made = []

    def options(self, *flags, **given):
        quick = {
            "probe_interval": 0.05,
            "probe_failures": 2,
            "restart_backoff_initial": 0.05,
            "stop_grace": 5.0,
        }
        return LocalOptions(
            **{"command": tiny_command(*flags), "state_dir": self.state_dir, **quick, **given}
        )

    def make(self, *flags, probe_timeout=2.0, **given):
        """Return a platform that is not started; its servers can sleep if they are told so."""
        server = OpenAI(timeout=probe_timeout) if "--sleeps" in flags else PlainHttp(timeout=probe_timeout)
        sleeper = server if isinstance(server, OpenAI) else None
        platform = LocalProcesses(self.options(*flags, **given), server, sleeper=sleeper)
        self._made.append((platform, server))
        return platform

    async def start(self, *flags, **given):
        """Return a platform that is started, and its listener."""
        platform, listener = self.make(*flags, **given), FakeReplicaListener()
        await platform.start(listener)
        return platform, listener

    async def close(self):
        for platform, server in self._made:
            await platform.stop()
            await server.close()


def process_of(platform, index=0):
    """Return the first process of a replica."""
    return psutil.Process(platform.replicas()[index].pid)
