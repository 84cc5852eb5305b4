"""Frames for the tests of the gold tables, out of the lines of a trace or of a `Tale`."""

from __future__ import annotations

import json
from functools import cached_property
from typing import TYPE_CHECKING, Any

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
    from collections.abc import Iterable

    from pyspark.sql import DataFrame, Row, SparkSession

RENAMED = {"wall_ts": "wall_us", "group_ts_us": "group_us", "verb": "name", "puppet": "name", "hold_id": "name"}
"""Keys of a line that the table calls otherwise."""


class Gold:
    """The gold tables of one trace, as rows, in the order of their keys. What they are made of is made of the lines.

    A member's stay begins with its first JoinGroup that formed a generation.
    """

    def __init__(self, spark: SparkSession, lines: Iterable[dict[str, Any]]) -> None:
        self._spark = spark
        self._lines = [line for line in lines if line["kind"] != "header"]
        self.event = self._frame(schema.EVENT, *(_event(line) for line in self._lines))
        self.trace = self._frame(schema.TRACE, {"trace_id": "t", "run_id": "r", "test_id": "x", "cluster": "c"})

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
    def stories(self) -> dict[str, Story]:
        groups = {line["group_id"]: None for line in self._lines if line.get("group_id")}
        return {group: Story(self._lines, group) for group in groups}

    @cached_property
    def assignment(self) -> DataFrame:
        rows = [
            {"group_id": group, "generation": asked.generation, "seq": asked.seq, "member_id": member_id}
            | {"member": story.label(member_id), "topic": topic, "partition": number}
            for group, story in self.stories.items()
            for asked in story.calls
            if asked.api == "SyncGroup" and asked.error == OK
            for member_id, topics in (asked.asked.get("assignments") or {}).items()
            for topic, numbers in (topics or {}).items()
            for number in numbers
        ]
        return self._frame(schema.ASSIGNMENT, *rows)

    @cached_property
    def member_span(self) -> DataFrame:
        found: dict[str, dict[str, Any]] = {}
        for group, story in self.stories.items():
            for asked in story.calls:
                if asked.formed is not None:
                    stay = {"group_id": group, "member_id": asked.member_id, "member": story.label(asked.member_id)}
                    stay |= {"client_id": asked.client_id, "joined_seq": asked.seq}
                    found.setdefault(asked.member_id, stay | {"session_timeout_ms": asked.asked["session_timeout_ms"]})
            for line in story.own:
                if line["kind"] == "member" and line["change"] in ("removed", "replaced"):
                    ended = {"left_seq": line["seq"], "left_us": line["group_ts_us"]}
                    found[line["member_id"]] = found.get(line["member_id"], {}) | ended
        return self._frame(schema.MEMBER_SPAN, *(stay for stay in found.values() if "member" in stay))

    @cached_property
    def _rebalance(self) -> DataFrame:
        made = rebalance(
            self.event, self.call, self.member_span, self.round, self.arrival, self.move, self.trace
        )
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
        filled = [tuple({"trace_id": "t", **row}.get(name) for name in table.names) for row in rows]
        return self._spark.createDataFrame(filled, table.columns)


def _event(line: dict[str, Any]) -> dict[str, Any]:
    row = {RENAMED.get(name, name): value for name, value in line.items()}
    body = row.get("body")
    return row | {"body": None if body is None else json.dumps(body)}
