"""The texts of queries that DuckDB and Spark share, and a connection of DuckDB that has the functions of Spark.

A table is named `gold.rebalance` in them.
"""

from __future__ import annotations

import re
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from .job_errors import JobRefused

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

LIKE_SPARK = """
    SET GLOBAL default_null_order = 'nulls_first_on_asc_last_on_desc';
    SET GLOBAL TimeZone = 'UTC';
    CREATE MACRO unix_seconds(moment) AS epoch_us(moment) // 1000000;
    CREATE MACRO timestamp_micros(us) AS make_timestamptz(us);
    CREATE MACRO count_if(condition) AS count(*) FILTER (condition);
    CREATE MACRO percentile_approx(number, share) AS quantile_disc(number, share);
    CREATE MACRO mixed(low, high, place) AS low + (high - low) * (place - floor(place));
    CREATE MACRO at_place(numbers, place) AS
        mixed(numbers[1 + CAST(floor(place) AS INT)], numbers[1 + CAST(ceil(place) AS INT)], place);
    -- quantile_cont rounds differently
    CREATE MACRO percentile(number, share) AS
        at_place(list_sort(list(number) FILTER (number IS NOT NULL)), CAST(share AS DOUBLE) * (count(number) - 1));
    CREATE MACRO xxhash64(one) AS hash(one);
    CREATE MACRO collect_list(one) AS list(one);
    CREATE MACRO collect_set(one) AS coalesce(list(DISTINCT one) FILTER (one IS NOT NULL), []);
    CREATE MACRO explode(several) AS unnest(several);
    CREATE MACRO min_by(one, place) AS arg_min_null(one, place);
    CREATE MACRO max_by(one, place) AS arg_max_null(one, place);
"""
"""The order and the functions of Spark, for DuckDB."""

_TABLE = re.compile(r"\b(bronze|silver|gold|mart)\.(\w+)")

_QUERY = re.compile(r"^-- (?:query|table) ([\w/]+)[^\n]*\n(.*?)(?=\n\n|\Z)", re.DOTALL | re.MULTILINE)


class Row(dict[str, Any]):
    """A row by its columns, which are attributes, too."""

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - a value of a column
        """Return the value of a column."""
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


def queries_of(package: str, file: str) -> dict[str, str]:
    """Return the queries of a file by name. Each follows a line with its name and precedes an empty line."""
    return dict(_QUERY.findall(files(package).joinpath(file).read_text(encoding="utf-8")))


def with_views(query: str, name: str = r"\1_\2") -> str:
    """Return a query with other names of the tables."""
    return _TABLE.sub(name, query)


def inputs_of(query: str) -> list[str]:
    """Return the paths of the tables that a query reads, in order of their names."""
    return sorted({f"{layer}/{name}" for layer, name in _TABLE.findall(query)})


def connect() -> DuckDBPyConnection:
    """Return a connection of DuckDB that has the functions of Spark. Raises JobRefused without DuckDB."""
    try:
        import duckdb  # noqa: PLC0415 - an optional dependency
    except ModuleNotFoundError:
        raise JobRefused("duckdb is not installed: pip install duckdb") from None
    connection = duckdb.connect()
    connection.execute(LIKE_SPARK)
    return connection
