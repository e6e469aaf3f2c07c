"""Several proxies before one fleet: a controller tells each which replicas there are, and its slots of each.

    controller: teller.py ──GET, PUT /api/shares/POOL──▶ proxy: routes.py ▶ told_fleet.py ▶ request path

How slots are divided is `scaling.divide`; what is said is in `message.py`. Nobody is asked while a request
waits: a proxy gives out the slots that it has, and keeps them should no controller be heard of any more.
"""
