"""Assertions about a group, as pure functions over trace lines and snapshots.

Nothing here queries a cluster, waits or writes. `group_trace` prepares the lines of one group; the other modules read
it: `rebalances`, `requests`, `members`, `ownership`, `zombies`, and the checks of clients and coordinator
(`conformance`, C01 to C14 and S01 to S16). The pipeline's fold reads files with the same code.
"""
