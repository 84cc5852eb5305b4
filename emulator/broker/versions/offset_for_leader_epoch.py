"""OffsetForLeaderEpoch (23), versions 0-4: where an epoch ended.

v2 current_leader_epoch: 74, 75 (KIP-320). Leaders never change, so there is the one epoch 0.
"""
