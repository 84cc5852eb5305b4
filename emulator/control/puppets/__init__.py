"""Puppets: simulated members of groups inside the emulator, with healthy or faulty behaviours (see `behaviours`).

A puppet is a consumer without records. It sends requests over connections that carry messages instead of bytes
(`ClusterRuntime.send_message`), so that the trace, rules and holds treat it like any client. It follows Java's consumer
(AbstractCoordinator and ConsumerCoordinator of kafka-clients 3.9).

    operations   operations of tests (`puppets.create`, …)
    supervisor   all puppets of a cluster: timers, delivery of responses, connections
    puppet       one member: join, sync, heartbeat, rejoin, leave
    requests     its requests
    connection   its connection to the coordinator
    role         its embedded protocol: a consumer's subscription and assignors, or a Connect worker's tasks
"""
