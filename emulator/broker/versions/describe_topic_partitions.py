"""DescribeTopicPartitions (75), version 0: topics a page at a time (KIP-966).

Not emulated: eligible leader replicas, which are always empty.
"""
