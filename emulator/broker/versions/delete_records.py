"""DeleteRecords (21), versions 0-2: no version differs in anything the core could see (KIP-107).

A topic whose cleanup.policy is not delete is refused with 44, as in Kafka.
"""
