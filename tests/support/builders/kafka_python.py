"""What kafka-python does not have."""

UNKNOWN = {
    f"{name}{kind}"
    for name in (
        "ConsumerGroupHeartbeat",
        "ConsumerGroupDescribe",
        "UnregisterBroker",
        *(f"{verb}DelegationToken" for verb in ("Create", "Renew", "Expire", "Describe")),
        "AddRaftVoter",
        "RemoveRaftVoter",
        *("ShareGroupHeartbeat", "ShareGroupDescribe", "ShareFetch", "ShareAcknowledge"),
        *("StreamsGroupHeartbeat", "StreamsGroupDescribe", "StreamsGroupTopologyDescriptionUpdate"),
        *(f"{verb}ShareGroupState" for verb in ("Initialize", "Read", "Write", "Delete")),
        "ReadShareGroupStateSummary",
        *(f"{verb}ShareGroupOffsets" for verb in ("Describe", "Alter", "Delete")),
    )
    for kind in ("Request", "Response")
}
"""Messages that kafka-python does not have; `test_kio` compares them."""
