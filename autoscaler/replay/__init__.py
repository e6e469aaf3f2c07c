"""The same two cores over a trace, in simulated time: what would this policy have cost, and missed?"""
