"""The whole program before Triton servers that a test has started."""

from pathlib import Path

import yaml

from load.free_port import free_port
from tests.fakes.program import Program
from tests.fakes.triton_server import TritonServer


class TritonProgram(Program):
    """`autoscaler run` with one pool of the given servers, four slots each, over HTTP and gRPC."""

    def __init__(self, folder: Path, *servers: TritonServer) -> None:
        super().__init__(folder)
        self.grpc = free_port()
        self.access_log = folder / "access.log"
        settings = yaml.safe_load(self.config.read_text())
        settings["grpc"] = {"listen": f"127.0.0.1:{self.grpc}"}
        settings["http"] = {"access_log": {"path": str(self.access_log)}}
        settings["pools"]["pool"] |= {
            "server": {"kind": "triton", "grpc_port": servers[0].grpc_port},
            "slots_per_replica": 4,
            "platform": {"kind": "static", "urls": [server.url for server in servers]},
        }
        self.config.write_text(yaml.safe_dump(settings))
