"""The rebalance laboratory: every rebalance protocol under the same load, in virtual time.

A scheme plays a protocol, a situation acts on its members, and figures follow from the record of the run. The
laboratory stands on the handles: classic schemes run on the emulator's own core.
"""
