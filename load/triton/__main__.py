"""`python -m load.triton install FOLDER` and `… serve --home FOLDER --port N`.

argparse instead of the command-line library used elsewhere: every replica starts through here, and an
import of a quarter of a second, a dozen times at once, would show in the cold starts that are measured.
"""

import argparse
import sys
from pathlib import Path

from load.triton.serve import EmulatedAccelerator, become_server


def parse(arguments: list[str]) -> argparse.Namespace:
    """Return what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m load.triton", description="A real Triton server on CPU.")
    commands = parser.add_subparsers(dest="command", required=True)
    install = commands.add_parser(
        "install", help="build its environment; quick and silent if it is there already"
    )
    install.add_argument("home", type=Path, help="folder of the environment, e.g. .triton")
    install.add_argument("--base-python", default=sys.executable, help="interpreter to build it with")
    serve = commands.add_parser("serve", help="become a server on 127.0.0.1 with the model `embed`")
    serve.add_argument("--home", type=Path, required=True, help="folder that `install` built")
    serve.add_argument("--port", type=int, required=True, help="HTTP port")
    serve.add_argument("--grpc-port", type=int, help="gRPC port; without it there is none")
    serve.add_argument("--slots", type=int, default=1, help="requests served at a time")
    serve.add_argument(
        "--service-time", type=float, default=0.0, help="mean time of a request on the accelerator [s]"
    )
    serve.add_argument("--scv", type=float, default=0.0, help="variance / mean² of that time")
    serve.add_argument(
        "--load-time", type=float, default=0.0, help="time to load weights before it is ready [s]"
    )
    return parser.parse_args(arguments)


def install_once(home: Path, base_python: str) -> int:
    """Install unless it is there; return the exit code."""
    from load.triton.install import InstallationFailed, install, is_installed  # noqa: PLC0415 (not needed to serve)

    if is_installed(home, base_python):
        return 0
    print(f"Installing Triton and a small model into {home} (once, about half a minute) …", flush=True)
    try:
        seconds = install(home, base_python)
    except InstallationFailed as failure:
        print(
            f"Triton cannot be used here: {failure}. The plain HTTP model server takes its place.",
            file=sys.stderr,
        )
        return 1
    except KeyboardInterrupt:
        print("Triton was not installed: interrupted.", file=sys.stderr)
        return 1
    print(f"Triton is installed in {home} ({seconds:.0f} s).")
    return 0


def main() -> int:
    """Run the command given; return the exit code."""
    arguments = parse(sys.argv[1:])
    if arguments.command == "install":
        return install_once(arguments.home, arguments.base_python)
    try:
        become_server(
            arguments.home,
            arguments.port,
            EmulatedAccelerator(arguments.slots, arguments.service_time, arguments.scv, arguments.load_time),
            arguments.grpc_port,
        )
    except OSError as error:
        print(f"cannot start Triton: {error}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
