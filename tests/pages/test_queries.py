"""The Perfetto queries of docs/timeline.md, run on tables like those that Perfetto builds from a trace."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from browsing.recorded_traces import lines_of

from koordinator.emulator.pages.perfetto import perfetto_of

if TYPE_CHECKING:
    from collections.abc import Iterator

TEXT = (Path(__file__).parent.parent.parent / "docs" / "timeline.md").read_text(encoding="utf-8")

QUERIES = dict(re.findall(r"```sql\n-- ([^\n:]+)[^\n]*\n(.+?)```", TEXT, re.DOTALL))

TABLES = """
create table process (upid integer, name text);
create table thread (utid integer, upid integer, name text);
create table thread_track (id integer, utid integer);
create table slice (ts integer, dur integer, name text, category text, track_id integer, arg_set_id integer);
create table args (arg_set_id integer, key text, string_value text);
"""


@pytest.fixture
def tables() -> Iterator[sqlite3.Connection]:
    """Create tables: slices and instants on the track of their thread, asynchronous slices on others; times in ns."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(TABLES)
        fill(connection, perfetto_of(lines_of("late_commit"))["traceEvents"])
        yield connection


def fill(connection: sqlite3.Connection, events: list[dict[str, Any]]) -> None:
    ends = {event["id"]: event["ts"] for event in events if event["ph"] == "e"}
    for number, event in enumerate(events):
        utid = event["pid"] * 1000 + event["tid"]
        match event["ph"], event["name"]:
            case "M", "process_name":
                connection.execute("insert into process values (?, ?)", (event["pid"], event["args"]["name"]))
            case "M", "thread_name":
                connection.execute("insert into thread values (?, ?, ?)", (utid, event["pid"], event["args"]["name"]))
                connection.execute("insert into thread_track values (?, ?)", (utid, utid))
            case (("X" | "i" | "b"), name):
                dur = ends[event["id"]] - event["ts"] if event["ph"] == "b" else event.get("dur", 0)
                track = 1_000_000 + number if event["ph"] == "b" else utid
                values = (event["ts"] * 1000, dur * 1000, name, event["cat"], track, number)
                connection.execute("insert into slice values (?, ?, ?, ?, ?, ?)", values)
                for key, value in event["args"].items():
                    connection.execute("insert into args values (?, ?, ?)", (number, f"args.{key}", str(value)))
            case _:
                pass


def test_there_are_five_queries() -> None:
    assert len(QUERIES) == 5


def test_the_longest_barrier_is_that_of_the_straggler(tables: sqlite3.Connection) -> None:
    (group, _, ms), *_ = tables.execute(QUERIES["the longest join barriers"]).fetchall()
    assert group == "group orders-svc"
    assert ms > 1000


def test_the_straggler_is_the_member_that_joined_last(tables: sqlite3.Connection) -> None:
    (_, member, times, _), *_ = tables.execute(QUERIES["stragglers"]).fetchall()
    assert (member, times) == ("slow", 1)


def test_the_commit_of_a_removed_member_is_reported(tables: sqlite3.Connection) -> None:
    rows = tables.execute(QUERIES["commits of members that are none any more, or of an older generation"]).fetchall()
    assert [(member, error) for member, _, error in rows] == [("slow", "UNKNOWN_MEMBER_ID")]


def test_idle_members_are_summed_by_state(tables: sqlite3.Connection) -> None:
    rows = {state: seconds for _, state, seconds in tables.execute(QUERIES["member-seconds without work"])}
    assert rows["unjoined"] > 1
    assert all(seconds >= 0 for seconds in rows.values())


def test_waits_are_summed_by_api(tables: sqlite3.Connection) -> None:
    rows = {
        api: longest for api, _, longest, _ in tables.execute(QUERIES["how long clients waited for an answer, by API"])
    }
    assert rows["JoinGroup"] == max(rows.values())
