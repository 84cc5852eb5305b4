"""A small admin client for consumer groups of any Kafka with a plaintext listener.

    with Admin([Address("127.0.0.1", 9092)], timeout_s=30, software_version="1") as admin:
        for group in list_groups(admin).groups: ...

The client blocks and starts no threads. It supports neither TLS nor SASL; it detects such listeners and reports them.
Groups of KIP-848 are described by ConsumerGroupDescribe, share groups by ShareGroupDescribe; streams groups are only
listed.
"""
