"""DescribeCluster (60), versions 0-2.

v1 endpoint_type: 114 for controllers, 115 for what is neither (KIP-919) | v2 fenced brokers, of which there
are none.
"""
