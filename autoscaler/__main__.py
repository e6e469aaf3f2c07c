"""`python -m autoscaler` and the command `autoscaler`."""

from autoscaler.cli import main

__all__ = ["main"]

if __name__ == "__main__":
    main()
