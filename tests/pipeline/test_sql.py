"""`koordinator-pipeline sql` queries the tables of a store, without Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from click.testing import CliRunner, Result
from pyarrow import parquet

from koordinator.pipeline.cli import jobs
from koordinator.pipeline.job_errors import JobRefused

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.needs("engines")


def sql(store: Path, *arguments: str, typed: str | None = None) -> Result:
    return CliRunner().invoke(jobs, ["sql", "--store", str(store), *arguments], input=typed, standalone_mode=False)


def put(path: Path, **columns: list[object]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pa.table(columns), path)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Write rebalances of two loads; the older files lack a column, and a third load was interrupted."""
    root = tmp_path / "it's a store"
    put(root / "about" / "part-0.parquet", schema_version=[1])
    put(root / "gold/rebalance/home=text-0/part-0.parquet", group_id=["g"], cause=["member_join"])
    put(root / "gold/rebalance/home=text-1/part-0.parquet", group_id=["h"], cause=["member_leave"], join_ms=[1.5])
    put(root / "gold/rebalance/_temporary/0/part-0.parquet", group_id=["cut off"], cause=["member_leave"])
    return root


def test_a_table_has_the_rows_of_all_loads_and_null_for_missing_columns(store: Path) -> None:
    query = (
        "SELECT string_agg(concat_ws('|', group_id, join_ms, sync_ms, home), ' ' ORDER BY group_id) FROM gold.rebalance"
    )
    result = sql(store, "-c", query)
    assert (result.return_value, "g|text-0 h|1.5|text-1" in result.output) == (0, True), result.output


def test_a_table_without_rows_has_its_columns(store: Path) -> None:
    query = "SELECT count(*) + 40 AS n, any_value(status) FROM mart.verdict JOIN silver.call USING (trace_id)"
    assert "40" in sql(store, "-c", query).output


def test_the_prompt_runs_each_query_at_its_semicolon(store: Path) -> None:
    output = sql(store, typed="SELECT 40 +\n 2;\nSELECT nothing;\nSELECT 50 + 3;\n").output
    assert "42" in output
    assert "53" in output
    assert output.count("sql> ") == 4


def test_an_invalid_query_fails_with_duckdbs_message(store: Path) -> None:
    result = sql(store, "-c", "SELECT nothing FROM gold.rebalance")
    assert result.return_value == 1
    assert 'koordinator-pipeline sql: Binder Error: Referenced column "nothing" not found' in result.stderr


def test_a_folder_that_is_no_store_is_refused(tmp_path: Path) -> None:
    refused = sql(tmp_path, "-c", "SELECT 1").exception
    assert isinstance(refused, JobRefused)
    assert "not a store of koordinator-pipeline on this machine" in str(refused)
