"""Kafka's wire protocol: messages and their bytes, for every version of the emulated APIs.

`schema` has the declaration language, `messages` the declarations, `codec` encodes and decodes them. `frames` has
what surrounds a message; `records` has the record batches of Produce and Fetch. This package has no knowledge of
groups, brokers or sockets.
"""
