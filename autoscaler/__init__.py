"""Stands in front of GPU model servers: queues, forecasts, sizes by queueing theory, tells the platform."""

__version__ = "0.1.0"
