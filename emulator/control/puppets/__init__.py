"""Puppets: simulated members of groups inside the emulator, with healthy or faulty behaviours (see `behaviours`).

A puppet is a consumer without records. It sends requests over connections that carry messages instead of bytes
(`ClusterRuntime.send_message`), so that the trace, rules and holds treat it like any client. It follows Java's consumer
(AbstractCoordinator and ConsumerCoordinator of kafka-clients 3.9).
"""
