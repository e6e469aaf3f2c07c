"""The driver of the request path: HTTP in, one decision of the dispatcher per event, HTTP out.

In the order in which a request meets them:

    server, listener      listens, drains, hands over   connection     parses, bounds
    handler               head to last byte             conversation   what all handling has in common
    head_check, wishes    what is refused, and asked    body           holds what the client sends
    execution, attempt    slots and calls               drive          all that touches the dispatcher
    upstream, call        one call to a replica         relay, tunnel  stream back; WebSocket
    idempotency, keyed_*  what may come twice           answers        says no
"""
