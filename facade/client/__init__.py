"""A small admin client for groups of any Kafka.

    with Admin([Address("127.0.0.1", 9092)], timeout_s=30, software_version="1") as admin:
        for group in list_groups(admin).groups: ...

The client blocks and starts no threads. With settings it speaks TLS and SASL;
without them it detects such listeners and reports them.
Groups of KIP-848 are described by ConsumerGroupDescribe, share and streams groups by ShareGroupDescribe and
StreamsGroupDescribe.
"""
