"""A small admin client for consumer groups of any Kafka with a plaintext listener.

    with Admin([Address("127.0.0.1", 9092)], timeout_s=30, software_version="1") as admin:
        for group in list_groups(admin).groups: ...

| module | responsibility |
|---|---|
| `protocol` | the bytes of one connection, without I/O: frames, headers, version negotiation |
| `connection` | a `ClientProtocol` on a socket, with a deadline for every operation |
| `admin` | `Admin`: finds the broker for each request, and retries while brokers move |
| `groups` | `list_groups`, `describe_groups`, `delete_groups` |
| `members` | `remove_members` (KIP-345) |
| `offsets` | committed offsets of groups and end offsets of partitions |
| `topics` | creating and deleting topics |
| `logs` | reading and appending records |
| `errors` | `ClientError` for a failed connection, `Failure` for a failed request |

The client blocks and starts no threads. It supports neither TLS nor SASL; it detects such listeners and reports them.
Groups of KIP-848 are listed, but neither described nor changed.
"""
