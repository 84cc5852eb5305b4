"""Fetch (1), versions 0-18: read records.

v0-3 cannot carry batches of magic 2: 35 where there are records | v4 magic 2 | v7 sessions (KIP-227) | v9
current_leader_epoch: 74, 75 | v13 topic ids: 100 | v16 node_endpoints, which are left out: leaders never
move. A field that a version lacks is its default, which is what the core takes it for. Not emulated:
followers, diverging epochs, conversion for v0-3, preferred read replicas.
"""
