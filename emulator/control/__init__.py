"""Control: operations on a cluster that are no part of Kafka's protocol.

The public methods of each part are operations (`operations.py`). An operation that is impossible raises ValueError and
changes nothing.
"""
