"""What the trace of a group says of its clients and of itself: pure functions over trace lines and snapshots.

Nothing here asks a cluster, waits or writes. `story` prepares the lines of one group; the other modules read it:
`rebalances`, `requests`, `members`, `ownership`, `zombies`, and the client checks C01 to C10 (`conformance`).
"""
