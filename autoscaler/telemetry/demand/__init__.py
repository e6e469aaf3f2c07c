"""Demand that was counted elsewhere: how a door tells it, and how it is read there or from a Prometheus.

recent ─ report ▶ JSON ▶ reader ─┐
exported counters ▶ prometheus ──┴▶ one observation of the whole pool an interval
"""
