"""Frames for the tests of the gold tables, out of the lines of a trace or of a `Tale`."""

from __future__ import annotations

import json
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tales import Tale

from koordinator.emulator.verify.story import OK, Story
from koordinator.pipeline import schema
from koordinator.pipeline.gold.avoided import avoided
from koordinator.pipeline.gold.commit import commit
from koordinator.pipeline.gold.fencing import fencing
from koordinator.pipeline.gold.heartbeat import heartbeat
from koordinator.pipeline.gold.member_downtime import member_downtime
from koordinator.pipeline.gold.partition_gap import partition_gap
from koordinator.pipeline.gold.rebalance import rebalance
from koordinator.pipeline.gold.state_time import state_time
from koordinator.pipeline.silver.arrival import arrival
from koordinator.pipeline.silver.call import call
from koordinator.pipeline.silver.move import move
from koordinator.pipeline.silver.round import round_

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pyspark.sql import DataFrame, Row, SparkSession

RENAMED = {"wall_ts": "wall_us", "group_ts_us": "group_us", "verb": "name", "puppet": "name", "hold_id": "name"}
"""Keys of a line that the table calls otherwise."""


class Tales:
    """Tales that are told at once, a trace each: `tales.told` beside a function of a Tale adds it, by its name."""

    def __init__(self) -> None:
        self._tales: dict[str, Callable[[Tale], None]] = {}

    def told(self, tell: Callable[[Tale], None]) -> str:
        """Add a tale; gives its name."""
        self._tales[tell.__name__] = tell
        return tell.__name__

    def gold(self, spark: SparkSession) -> Gold:
        """What they come to."""
        traces = {}
        for name, tell in self._tales.items():
            tell(tale := Tale())
            traces[name] = tale.lines
        return Gold(spark, traces)


def of(rows: Iterable[Row], trace_id: str) -> list[Row]:
    """The rows of one trace."""
    return [row for row in rows if row.trace_id == trace_id]


class Gold:
    """The gold tables of some traces, as rows, in the order of their keys. What they are made of is made of the lines.

    A member's stay begins with its first JoinGroup that formed a generation. With several traces at once, what is
    asked of one costs no more than what is asked of all.
    """

    def __init__(self, spark: SparkSession, traces: Mapping[str, Iterable[dict[str, Any]]]) -> None:
        self._spark = spark
        self._lines = {name: [line for line in lines if line["kind"] != "header"] for name, lines in traces.items()}
        events = [{"trace_id": name} | _event(line) for name, lines in self._lines.items() for line in lines]
        self.event = self._frame(schema.EVENT, *events)
        whose = [{"trace_id": name, "run_id": "r", "test_id": f"test_{name}", "cluster": "c"} for name in self._lines]
        self.trace = self._frame(schema.TRACE, *whose)

    @cached_property
    def call(self) -> DataFrame:
        return self._kept(call(self.event), schema.CALL)

    @cached_property
    def round(self) -> DataFrame:
        return self._kept(round_(self.event), schema.ROUND)

    @cached_property
    def arrival(self) -> DataFrame:
        return self._kept(arrival(self.call, self.round), schema.ARRIVAL)

    @cached_property
    def move(self) -> DataFrame:
        return self._kept(move(self.assignment, self.round), schema.MOVE)

    @cached_property
    def stories(self) -> dict[tuple[str, str], Story]:
        """The same lines as the emulator reads them, by trace and group."""
        groups = {
            (name, line["group_id"]): lines
            for name, lines in self._lines.items()
            for line in lines
            if line.get("group_id")
        }
        return {(name, group): Story(lines, group) for (name, group), lines in groups.items()}

    @cached_property
    def assignment(self) -> DataFrame:
        rows = [
            {
                "trace_id": trace_id,
                "group_id": group,
                "generation": asked.generation,
                "seq": asked.seq,
                "member_id": member_id,
            }
            | {"member": story.label(member_id), "topic": topic, "partition": number}
            for (trace_id, group), story in self.stories.items()
            for asked in story.calls
            if asked.api == "SyncGroup" and asked.error == OK
            for member_id, topics in (asked.asked.get("assignments") or {}).items()
            for topic, numbers in (topics or {}).items()
            for number in numbers
        ]
        return self._frame(schema.ASSIGNMENT, *rows)

    @cached_property
    def member_span(self) -> DataFrame:
        found: dict[tuple[str, str], dict[str, Any]] = {}
        for (trace_id, group), story in self.stories.items():
            for asked in story.calls:
                if asked.formed is not None:
                    stay = {"trace_id": trace_id, "group_id": group, "member_id": asked.member_id}
                    stay |= {"member": story.label(asked.member_id), "client_id": asked.client_id}
                    stay |= {"joined_seq": asked.seq, "session_timeout_ms": asked.asked["session_timeout_ms"]}
                    found.setdefault((trace_id, asked.member_id), stay)
            for line in story.own:
                if line["kind"] == "member" and line["change"] in ("removed", "replaced"):
                    ended = {"left_seq": line["seq"], "left_us": line["group_ts_us"]}
                    found.get((trace_id, line["member_id"]), {}).update(ended)
        return self._frame(schema.MEMBER_SPAN, *found.values())

    @cached_property
    def _rebalance(self) -> DataFrame:
        made = rebalance(self.event, self.call, self.member_span, self.round, self.arrival, self.move, self.trace)
        return self._kept(made, schema.REBALANCE)

    def rebalances(self) -> list[Row]:
        return self._rows(self._rebalance, schema.REBALANCE)

    def downtimes(self) -> list[Row]:
        made = member_downtime(self.call, self.round, self.arrival, self.move, self._rebalance, self.trace)
        return self._rows(made, schema.MEMBER_DOWNTIME)

    def gaps(self) -> list[Row]:
        made = partition_gap(
            self.event, self.call, self.member_span, self.round, self.arrival, self.move, self._rebalance, self.trace
        )
        return self._rows(made, schema.PARTITION_GAP)

    def commits(self) -> list[Row]:
        return self._rows(commit(self.event, self.call, self.trace), schema.COMMIT)

    def fencings(self) -> list[Row]:
        return self._rows(fencing(self.event, self.trace), schema.FENCING)

    def heartbeats(self) -> list[Row]:
        return self._rows(heartbeat(self.call, self.member_span, self.trace), schema.HEARTBEAT)

    def state_times(self) -> list[Row]:
        return self._rows(state_time(self.event, self.trace), schema.STATE_TIME)

    def avoided(self) -> list[Row]:
        return self._rows(avoided(self.event, self.trace), schema.AVOIDED)

    def _rows(self, frame: DataFrame, table: schema.Table) -> list[Row]:
        found: list[Row] = frame.collect()
        keys = [tuple(row[name] for name in table.key) for row in found]
        assert len(set(keys)) == len(keys), f"{table.path}: rows with the same key"
        return [found[at] for at in sorted(range(len(found)), key=lambda at: keys[at])]

    def _kept(self, frame: DataFrame, table: schema.Table) -> DataFrame:
        """As a load does it: what is made is written, and read again."""
        return self._spark.createDataFrame(frame.collect(), table.columns)

    def _frame(self, table: schema.Table, *rows: dict[str, Any]) -> DataFrame:
        filled = [tuple(row.get(name) for name in table.names) for row in rows]
        return self._spark.createDataFrame(filled, table.columns)


def _event(line: dict[str, Any]) -> dict[str, Any]:
    row = {RENAMED.get(name, name): value for name, value in line.items()}
    body = row.get("body")
    return row | {"body": None if body is None else json.dumps(body)}
