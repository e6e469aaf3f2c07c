"""How the GPUs, cores, memory and network cards of a machine are joined, and who sits in a wrong place."""
