"""Random requests with unusual values, played over sockets to a real broker and to the emulator.

Every field of every group, offset and transaction request may be null, empty, negative, extreme or repeated, in every
version. `requests` has the usual ones, `odd` changes them, `steps` generates sequences, `playing` plays one, and at its
end reads what the groups have written to `__consumer_offsets`; the rounds are those of transactions.
"""
