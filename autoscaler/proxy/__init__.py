"""The driver of the request path: HTTP in, one decision of the dispatcher per event, HTTP out.

In the order in which a request meets them: `server` listens and drains, `connection` parses, `handler` takes
one request from its head to its last byte, `body` holds what the client sends, `drive` is the only thing that
touches the dispatcher, `upstream` calls the replica, `relay` streams back; `answers` says no.
"""
