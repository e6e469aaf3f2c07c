"""For eyes: the admin listener, the live terminal view and decisions in words. Reads, changes nothing."""
