"""Benchmarks: each prints what it measured, beside peers in the same run. `python -m load.bench NAME`."""
