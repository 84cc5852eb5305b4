"""Logs of brokers and clients, translated to events of the trace.

A broker log becomes the events that the emulator's core records about a group: kinds `state`, `member`, `timer` and
`avoided_static`. It has no requests. A client log becomes events of the kind `client`, whose `change` is in
`reader.CHANGES`. `reader.LogReader` reads the lines of a file; nothing in this package needs Spark.
"""
