"""Random sequences of transactional requests, played over sockets to a real broker and to the emulator.

Unlike the sequences of groups they have no times: after each request the player waits until no markers are under way,
and then looks at everything that a transaction shows. `steps` generates sequences, `playing` plays one, `rounds`
compares and minimises, `sides` runs both brokers.
"""
