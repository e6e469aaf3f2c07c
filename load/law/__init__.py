"""Theory meets the wire: the waits of the running proxy against those of the queue that it claims to be.

`python -m load law` sends Poisson arrivals through the proxy to a server whose service times follow a law,
and asks two questions of what was seen from outside, without a word of the proxy's own:

- Is it an M/G/c queue? The mean wait must be that of M/M/c, M/D/c and M/G/c.
- Is it one request by request? Fed with the arrivals and the services that really happened, the recursion of
  Kiefer and Wolfowitz for c servers must give the very waits that were measured, when each request costs its
  slot a constant overhead; that overhead is fitted, and is what the proxy takes from the servers.
"""
