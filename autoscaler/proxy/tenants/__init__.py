"""Whose request it is, and whether it may be made: keys, names and limits.

`key` makes keys and their digests, `book` holds who there is, `gate` asks both of every request of either
listener, `tokens` reads from an answer how many tokens it took, `counts` is what is shown of it.
"""
