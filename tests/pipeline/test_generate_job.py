"""`koordinator-pipeline generate` writes traces as JSON lines or Parquet, and overwrites nothing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from click.testing import CliRunner
from pyarrow import parquet

from koordinator.pipeline.generate import generate_trace
from koordinator.pipeline.jobs.generate import generate
from koordinator.pipeline.schema import EVENT

if TYPE_CHECKING:
    from pathlib import Path

OPTIONS = ("--events", "900", "--events-per-trace", "500", "--seed", "4")
SIZES = (500, 400)
LINE_NAMES = {"wall_us": "wall_ts", "group_us": "group_ts_us"}


def generated() -> list[list[str]]:
    return [generate_trace(4, number, size).lines for number, size in enumerate(SIZES, 1)]


def test_each_trace_is_a_file_of_lines(tmp_path: Path) -> None:
    done = CliRunner().invoke(generate, ["--output", str(tmp_path / "new"), *OPTIONS, "--processes", "1"])
    assert done.exit_code == 0, done.output
    files = sorted((tmp_path / "new").iterdir())
    assert [path.name for path in files] == ["trace-000001.jsonl", "trace-000002.jsonl"]
    assert [path.read_text().splitlines() for path in files] == generated()
    assert "events in 2 traces" in done.output


def test_a_parquet_file_has_the_columns_of_events_and_the_same_values(tmp_path: Path) -> None:
    done = CliRunner().invoke(
        generate, ["--output", str(tmp_path), "--format", "parquet", *OPTIONS, "--processes", "1"]
    )
    assert done.exit_code == 0, done.output
    for number, lines in enumerate(generated(), 1):
        table = parquet.read_table(tmp_path / f"trace-{number:06}.parquet")
        assert table.column_names == EVENT.names
        first, *events, last = table.to_pylist()
        assert (first["kind"], first["body"]) == ("header", lines[0])
        assert (last["kind"], last["body"]) == ("test", lines[-1])
        assert [decoded(row) for row in events] == [row_of(json.loads(line)) for line in lines[1:-1]]


def decoded(row: dict[str, Any]) -> dict[str, Any]:
    row["body"] = None if row["body"] is None else json.loads(row["body"])
    return row


def row_of(line: dict[str, Any]) -> dict[str, Any]:
    names = {name: LINE_NAMES.get(name, name) for name in EVENT.names}
    row = {name: line.get(key) for name, key in names.items()}
    return row | {"source": "koordinator", "name": line.get("puppet") or line.get("verb") or line.get("hold_id")}


def test_the_files_do_not_depend_on_the_number_of_processes(tmp_path: Path) -> None:
    done = CliRunner().invoke(generate, ["--output", str(tmp_path), *OPTIONS, "--processes", "2"])
    assert done.exit_code == 0, done.output
    assert [path.read_text().splitlines() for path in sorted(tmp_path.iterdir())] == generated()


def test_a_folder_that_is_not_empty_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("here")
    done = CliRunner().invoke(generate, ["--output", str(tmp_path), *OPTIONS, "--processes", "1"])
    assert done.exit_code != 0
    assert "is not empty" in done.output
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
