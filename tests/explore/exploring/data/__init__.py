"""Random sequences of requests for topics and records, played over sockets to a real broker and to the emulator.

They have no times: after a request that changes metadata the player waits until the broker shows the change. `steps`
generates sequences, `batches` builds the records, `playing` plays a sequence; the rounds are those of transactions.
"""
