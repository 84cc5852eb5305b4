"""A reader of traces: events, exchanges, members, rebalances, deliveries and tasks, from lines, a file or a cluster.

    timeline = koordinator.trace.read("trace.jsonl")
    for rebalance in timeline.rebalances: ...

`read` returns a whole trace. `TraceReader` takes it line by line, and keeps only what is open. Nothing here needs the
emulator: the lines are all that is known.
"""

from __future__ import annotations

from .deliveries import ShareDelivery
from .events import Event, TraceError
from .exchanges import Exchange
from .reader import Membership, Settled, Timeline, TraceReader, read
from .rebalances import Rebalance
from .tasks import TaskStay

__all__ = [
    "Event",
    "Exchange",
    "Membership",
    "Rebalance",
    "Settled",
    "ShareDelivery",
    "TaskStay",
    "Timeline",
    "TraceError",
    "TraceReader",
    "read",
]
