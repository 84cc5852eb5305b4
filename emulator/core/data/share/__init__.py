"""Share partitions: which records of a partition the members of a share group hold (KIP-932)."""
