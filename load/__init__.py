"""Load, and servers that bear it: arrival and service laws, an open-loop generator, model servers, the demo.

In the repository only, no part of what is installed. It may import everything; nothing imports it.
"""
