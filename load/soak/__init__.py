"""Load and trouble at once, for as long as you like: does anything leak, hang, or end twice?

`python -m load soak --minutes 60` runs the product before four model servers, which are killed, stopped,
reset, silenced and slowed, one after the other, while well-behaved clients check every byte that they get and
rude ones leave in thousands, wherever they stand. What the process holds is sampled all the while: memory,
descriptors, tasks, slots. At the end it must hold no more than at the start, and nothing may grow.
"""
