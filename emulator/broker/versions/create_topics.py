"""CreateTopics (19), versions 0-7.

v1 validate_only | v4 -1 for the broker's default (accepted in every version, as Kafka does) | v5 what was
made | v7 topic_id. Not emulated: replication (a factor up to the number of brokers is accepted and shown),
timeouts, policies.
"""
