"""The levers: what may be done to a cluster from outside Kafka's protocol.

Each part of `Control` (`control.py`) is a class here; its public methods are operations. An operation
takes the node's time in integer milliseconds, then plain data by name (what JSON has, and bytes where records are
concerned), and gives plain data back. What cannot be done raises ValueError, with nothing changed.
"""
