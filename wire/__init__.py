"""Kafka's wire protocol: bytes to messages and back, for every version of every API that is emulated.

`schema` is how messages are declared, `messages` are the declarations, `codec` turns them into bytes
and back, `frames` and `headers` are what surrounds them, `records` is what Produce and Fetch carry.
This package knows nothing of groups, brokers or sockets.
"""
