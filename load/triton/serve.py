"""Become a Triton server: prepare what it needs, then `exec` it, so that its pid is the one the caller knows.

What made this way to start necessary:

- Triton's Python backend embeds CPython. It finds libpython through LD_LIBRARY_PATH and the standard library
  through the first `python3` on PATH; both must be of the same build, that of the environment in `home`.
- The instances of the model are processes of their own (stubs), in the server's process group; they end
  with the server.
- They share memory with it through /dev/shm. A server that ends in order removes its regions; what a killed
  one left is removed here, by the next server: the pid in the region's name says whose it was.
- Only HTTP listens, and gRPC where a port for it is given, on the loopback address. Metrics stay off: they
  would need one more free port a replica, and a port that is free when chosen may be taken when it is bound.
"""

import os
from dataclasses import dataclass
from pathlib import Path

SHARED_MEMORY = Path("/dev/shm")
REGION_PREFIX = "autoscaler-triton-"

MODEL_CONFIG = """\
name: "embed"
backend: "python"
max_batch_size: 32
input [{{ name: "TEXT", data_type: TYPE_STRING, dims: [1] }}]
output [{{ name: "EMBEDDING", data_type: TYPE_FP32, dims: [384] }}]
instance_group [{{ kind: KIND_CPU, count: {slots} }}]
"""


@dataclass(frozen=True)
class EmulatedAccelerator:
    """What the model's instances pretend to run on.

    Attributes
    ----------
    slots : int
        Requests served at a time: instances of the model [1].
    service_time : float
        Mean of the lognormal service time [s]; 0 leaves the time that the CPU takes.
    service_scv : float
        Its squared coefficient of variation [1].
    load_time : float
        What it takes to load the model's weights onto the accelerator, before the server is ready [s].
    """

    slots: int = 1
    service_time: float = 0.0
    service_scv: float = 0.0
    load_time: float = 0.0


def become_server(
    home: Path, port: int, accelerator: EmulatedAccelerator, grpc_port: int | None = None
) -> None:
    """Replace this process by Triton on 127.0.0.1:`port`; returns only by an error."""
    home = home.resolve()
    remove_regions_of_the_dead()
    command = server_command(home, port, model_repository(home, accelerator.slots), grpc_port)
    os.execve(command[0], command, server_environment(home, accelerator))


def server_command(home: Path, port: int, repository: Path, grpc_port: int | None = None) -> list[str]:
    """Return the command line of the server; without a `grpc_port` it does not speak gRPC."""
    grpc = ["--allow-grpc=false"]
    if grpc_port is not None:
        grpc = ["--grpc-address=127.0.0.1", f"--grpc-port={grpc_port}"]
    # Given once, this prefix names every region of this server: its pid stays the same across exec.
    regions = f"{REGION_PREFIX}{os.getpid()}-"
    return [
        str(package(home) / "tritonserver" / "bin" / "tritonserver"),
        f"--model-repository={repository}",
        f"--backend-directory={home / 'backends'}",
        f"--backend-config=python,shm-region-prefix-name={regions}",
        "--http-address=127.0.0.1",
        f"--http-port={port}",
        "--http-thread-count=2",
        *grpc,
        "--allow-metrics=false",
        "--disable-auto-complete-config",  # loads the model once instead of twice
        "--exit-timeout-secs=5",
        "--log-info=false",
    ]


def server_environment(home: Path, accelerator: EmulatedAccelerator) -> dict[str, str]:
    """Return the environment of the server and, inherited, of the model's instances."""
    environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONHOME", "PYTHONPATH")}
    library = (home / "backends" / "python" / "libpython").read_text().strip()
    libraries = [
        library,
        str(package(home).parent / "nvidia_pytriton.libs"),
        environment.get("LD_LIBRARY_PATH", ""),
    ]
    return environment | {
        "PATH": os.pathsep.join([str(home / "bin"), environment.get("PATH", os.defpath)]),
        "LD_LIBRARY_PATH": os.pathsep.join(part for part in libraries if part),
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "EMBED_HOME": str(home),
        "EMBED_SERVICE_TIME": str(accelerator.service_time),
        "EMBED_SERVICE_SCV": str(accelerator.service_scv),
        "EMBED_LOAD_TIME": str(accelerator.load_time),
    }


def package(home: Path) -> Path:
    """Return the folder of the package that carries the server."""
    found = sorted(home.glob("lib/python3.*/site-packages/pytriton"))
    if not found:
        raise FileNotFoundError(
            f"no Triton in {home}; `python -m load.triton install {home}` brings it there"
        )
    return found[0]


def model_repository(home: Path, slots: int) -> Path:
    """Return the repository whose model has `slots` instances, written if it is not there or not current."""
    repository = home / "repositories" / str(slots)
    write_if_changed(repository / "embed" / "config.pbtxt", MODEL_CONFIG.format(slots=slots))
    write_if_changed(
        repository / "embed" / "1" / "model.py", Path(__file__).with_name("embed.py").read_text()
    )
    return repository


def write_if_changed(path: Path, text: str) -> None:
    """Replace the file in one step: other replicas may be reading it."""
    if path.exists() and path.read_text() == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_text(text)
    draft.replace(path)


def remove_regions_of_the_dead() -> None:
    """Remove shared memory of servers that were killed."""
    for region in SHARED_MEMORY.glob(f"{REGION_PREFIX}*"):
        owner = region.name.removeprefix(REGION_PREFIX).partition("-")[0]
        if owner.isdigit() and not Path("/proc", owner).exists():
            region.unlink(missing_ok=True)
