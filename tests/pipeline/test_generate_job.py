"""`koordinator-pipeline generate` writes traces as lines and as Parquet, and nothing over anything."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from click.testing import CliRunner
from pyarrow import parquet

from koordinator.pipeline.generate import stories
from koordinator.pipeline.jobs.generate import generate
from koordinator.pipeline.schema import EVENT

if TYPE_CHECKING:
    from pathlib import Path

ASKED = ("--events", "900", "--events-per-trace", "500", "--seed", "4")
LINE_NAMES = {"wall_us": "wall_ts", "group_us": "group_ts_us"}


def test_each_trace_is_a_file_of_its_lines(tmp_path: Path) -> None:
    done = CliRunner().invoke(generate, ["--output", str(tmp_path / "new"), *ASKED])
    assert done.exit_code == 0, done.output
    files = sorted((tmp_path / "new").iterdir())
    assert [path.name for path in files] == ["trace-000001.jsonl", "trace-000002.jsonl"]
    assert [path.read_text().splitlines() for path in files] == [story.lines for story in stories(4, 900, 500)]
    assert "events in 2 traces" in done.output


def test_a_parquet_file_has_the_columns_of_events_and_says_the_same(tmp_path: Path) -> None:
    done = CliRunner().invoke(generate, ["--output", str(tmp_path), "--format", "parquet", *ASKED])
    assert done.exit_code == 0, done.output
    for story in stories(4, 900, 500):
        table = parquet.read_table(tmp_path / f"trace-{story.number:06}.parquet")
        assert table.column_names == EVENT.names
        first, *events, last = table.to_pylist()
        assert (first["kind"], first["body"]) == ("header", story.lines[0])
        assert (last["kind"], last["body"]) == ("test", story.lines[-1])
        assert [told(row) for row in events] == [told_by(json.loads(line)) for line in story.lines[1:-1]]


def told(row: dict[str, Any]) -> dict[str, Any]:
    row["body"] = None if row["body"] is None else json.loads(row["body"])
    return row


def told_by(line: dict[str, Any]) -> dict[str, Any]:
    names = {name: LINE_NAMES.get(name, name) for name in EVENT.names}
    row = {name: line.get(wanted) for name, wanted in names.items()}
    return row | {"source": "koordinator", "name": line.get("puppet") or line.get("verb") or line.get("hold_id")}


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("here")
    done = CliRunner().invoke(generate, ["--output", str(tmp_path), *ASKED])
    assert done.exit_code != 0
    assert "is not empty" in done.output
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
