"""The driver of the request path: HTTP in, one decision of the dispatcher per event, HTTP out.

`server` listens and drains; `handler` takes one request from accept to last byte; `body` holds what the
client sends; `drive` is the only thing that touches the dispatcher; `relay` talks to the model server;
`answers` says no. All of them live on one event loop and share its memory.
"""
