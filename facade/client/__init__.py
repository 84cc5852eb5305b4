"""A small client of Kafka's group administration, for any cluster with a plaintext listener.

    with Admin([Address("127.0.0.1", 9092)], timeout_s=30, software_version="1") as admin:
        for group in list_groups(admin).groups: ...

| module | what it has |
|---|---|
| `conversation` | the bytes of one connection: frames, headers, the choice of versions; no sockets |
| `link` | a `Conversation` on a socket, with a deadline for everything |
| `admin` | `Admin`: which broker answers for what, and asking again while that changes |
| `groups` | `list_groups`, `describe_groups`, `delete_groups` |
| `members` | `remove_members` (KIP-345) |
| `offsets` | the committed offsets of groups and the ends of logs |
| `topics` | making and deleting topics |
| `logs` | the records of a topic, read and appended |
| `problems` | what can go wrong: `ClientError` for a connection, `Refusal` for what a broker said |

It blocks and has no threads. There is no TLS and no SASL: a listener that looks like it is said to. Groups of
KIP-848 are listed, but neither described nor changed.
"""
