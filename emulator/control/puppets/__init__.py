"""Puppets: members of groups that live in the emulator, healthy ones and others (see `behaviours`).

A puppet is a consumer without records: it asks brokers as any client does, over connections that carry messages instead
of bytes (`Brokers.ask`), so that the trace, rules and holds meet it as they meet everybody else. What it does is what
Java's consumer does (AbstractCoordinator, ConsumerCoordinator of kafka-clients 3.9).

    operations   what tests ask for (`puppets.create`, …)
    troupe       all puppets of a cluster: who is called, and when
    puppet       one member: join, sync, beat, rejoin, leave
    requests     what it asks
    line         its way to its coordinator
    role         what it brings to the group: a consumer's subscription and assignors, or a Connect worker's
"""
