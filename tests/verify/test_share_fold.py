"""The rows of share and streams groups in the fold, on lists."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import pytest
from scenes.share_groups import two_workers
from scenes.trace_tales import Tale

from koordinator import Simulation
from koordinator.pipeline.fold.trace_fold import fold
from koordinator.pipeline.schema import TABLES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from koordinator.trace.exchanges import Line

NEW = ("gold/delivery", "gold/dead_letter", "gold/task")


def folded(lines: Sequence[Line]) -> dict[str, list[dict[str, Any]]]:
    rows: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for path, each in fold("t", lines):
        rows[path].extend(each)
    return rows


def test_deliveries_of_the_emulator_have_a_row_each() -> None:
    rows = folded(two_workers())["gold/delivery"]
    fates = {
        (offset, row["delivery_count"]): (row["member"], row["outcome"], row["archived"])
        for row in rows
        for offset in range(row["first_offset"], row["last_offset"] + 1)
    }
    assert sum(row["n_records"] for row in rows) == len(fates) == 7
    assert fates[0, 1] == ("A", "accepted", False)
    assert fates[2, 1] == ("A", "forced", False)
    assert fates[2, 2] == ("B", "rejected", True)
    assert all((row["held_ms"] or 0) >= 0 for row in rows)


def test_the_end_of_a_connection_leaves_its_acknowledgements_open() -> None:
    tale = Tale()
    tale.takes("a", (0, 1, 1))
    tale.acknowledges("a", (0, 1, "accept"))
    tale.lines.pop()
    tale.closes("a")
    tale.takes("b", (0, 1, 2))
    rows = folded(tale.lines)["gold/delivery"]
    assert [(row["member"], row["outcome"]) for row in rows] == [("a", "unknown"), ("b", "open")]


def test_dead_letters_have_a_row_each() -> None:
    tale = Tale()
    body = {"dead": ["t", 0, 3, 4, 5], "written_to": "dlq.t", "problem": None}
    tale.line("dead_letters", cause="delivered_too_often", body=body)
    (row,) = folded(tale.lines)["gold/dead_letter"]
    assert (row["n_records"], row["delivery_count"], row["written_to"]) == (2, 5, "dlq.t")


def streams_group() -> list[Line]:
    with Simulation(topics={"in": 2}) as cluster:
        group = cluster.group("app")
        for name in ("one", "two"):
            group.create_puppet(name, topics=["in"], group_protocol="streams").join()
        group.wait_stable(members=2)
        return list(cluster.events())


def test_tasks_of_the_emulator_have_a_row_for_each_stay() -> None:
    rows = folded(streams_group())["gold/task"]
    assert {(row["subtopology"], row["partition"]) for row in rows} == {("0", 0), ("0", 1)}
    assert sum(row["ended_seq"] is None for row in rows) == 2


def test_a_classic_group_has_no_such_rows() -> None:
    tale = Tale()
    tale.forms({"a": [0]})
    rows = folded(tale.lines)
    assert not any(rows[path] for path in NEW)


@pytest.mark.parametrize(("lines", "kind"), [(two_workers, "share"), (streams_group, "streams")])
def test_a_group_has_its_kind(lines: Any, kind: str) -> None:
    assert [row["type"] for row in folded(lines())["silver/group"] if row["group_id"] in ("g", "app")] == [kind]


def test_rows_have_the_columns_of_their_tables() -> None:
    rows = folded(two_workers()) | {"gold/task": folded(streams_group())["gold/task"]}
    of_trace = {"run_id", "test_id", "cluster"}
    for path in ("gold/delivery", "gold/task"):
        assert {*rows[path][0]} == {*TABLES[path].names} - of_trace
