"""Batching into model servers of KServe v2: requests that wait together are served by one call.

    body ─▶ item ─▶ queue, with its bucket ─▶ a slot frees ─▶ Batch: merge ─▶ one call ─▶ split ─▶ parts
            read                              who goes in                                  each client's form
            `kserve`                          `dispatch`

Nobody waits for a batch to fill: it is what waits when a replica can take a call. Who is alone then, or must
not be merged, goes through as it came, byte for byte. If the shared call fails in a way that one of them may
be to blame for, each is served once more, alone; a model that does not answer row by row is found out by that
and left unmerged.
"""
