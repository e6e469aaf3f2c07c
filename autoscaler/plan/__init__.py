"""How many replicas, before anything runs: the queueing formulas put into people's hands.

    traffic.py   a file of requests → rates, service times, SCVs, the peak hour
    service.py   what a way to serve must tell; the ways: one_by_one.py (clients patient or not), together.py
                 (in batches, and with continuous batching)
    question.py  demand, service, what is wanted, price
    answer.py    question → rows around the answer, the one recommended, what binds
    conflict.py  when the band and the wait exclude one another: by how much, and what helps
    day.py       what one fixed size does through a day
    pools.py     several pools beside one for all
    words.py     answers in sentences
    picture*.py  answers as pictures

Everything but the pictures is pure: values in, values out.
"""
