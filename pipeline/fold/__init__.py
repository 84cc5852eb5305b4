"""The fold: everything that follows a group through time, in plain Python over the ordered events of a trace.

`trace_fold` runs it on lists; `frames` runs it on Spark. The rules of groups (exchanges, rebalances, checks) are those
of `koordinator.emulator.verify`, which judges a running cluster with the same code.
"""
