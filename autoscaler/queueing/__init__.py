"""Queueing theory for inference fleets: numbers in, numbers out. Pure; numpy and scipy only.

The formulas are read by module, since relatives have equal names: `waiting.wait_tail` is M/M/c,
`ggc.wait_tail` any arrivals and service.
"""
