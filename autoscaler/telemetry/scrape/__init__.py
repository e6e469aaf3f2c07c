"""Metrics of other programs: what is asked of them, how their text is read, and what became of the asking."""
