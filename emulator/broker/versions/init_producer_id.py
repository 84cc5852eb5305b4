"""InitProducerId (22), versions 0-5: an id for an idempotent producer.

v3 producer_id and producer_epoch, both or neither (42).
Not emulated: transactions. A transactional id is refused with 53, which clients treat as fatal.
"""
