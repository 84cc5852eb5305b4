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
    )
    for kind in ("Request", "Response")
}
"""Messages that kafka-python does not have; `test_kio` compares them."""
