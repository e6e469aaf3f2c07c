"""Measuring: history on disk, metrics for Prometheus, and the status that screens show."""
