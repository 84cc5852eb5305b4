"""The types of columns, as values of plain Python: the tables are known where PySpark is not installed.

Names are those of Spark SQL.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import DataType


class TableColumn(NamedTuple):
    """A column of a table, or a field of a struct."""

    name: str
    kind: Kind
    doc: str = ""


@dataclass(frozen=True, slots=True)
class ArrayOf:
    """A list of elements of one type."""

    element: Kind


@dataclass(frozen=True, slots=True)
class MapOf:
    """A map from keys to values."""

    key: Kind
    value: Kind


@dataclass(frozen=True, slots=True)
class StructOf:
    """A row inside a row."""

    columns: tuple[TableColumn, ...]


Kind: TypeAlias = str | ArrayOf | MapOf | StructOf
"""A type: the name of a scalar, or a nested type."""


def text(kind: Kind) -> str:
    """Return a type in the words of Spark SQL: `map<string,array<int>>`."""
    match kind:
        case ArrayOf():
            return f"array<{text(kind.element)}>"
        case MapOf():
            return f"map<{text(kind.key)},{text(kind.value)}>"
        case StructOf():
            return f"struct<{','.join(f'{each.name}:{text(each.kind)}' for each in kind.columns)}>"
        case _:
            return kind


def duckdb_type(kind: Kind) -> str:
    """Return DuckDB's name of a type."""
    match kind:
        case ArrayOf():
            return f"{duckdb_type(kind.element)}[]"
        case MapOf():
            return f"MAP({duckdb_type(kind.key)}, {duckdb_type(kind.value)})"
        case StructOf():
            fields = (f'"{each.name}" {duckdb_type(each.kind)}' for each in kind.columns)
            return f"STRUCT({', '.join(fields)})"
        case _:
            return {"string": "VARCHAR", "timestamp": "TIMESTAMPTZ"}.get(kind, kind)


def arrow_type(kind: Kind) -> pa.DataType:
    """Return Arrow's object for a type, as Spark has it. Needs PyArrow."""
    import pyarrow as pa  # noqa: PLC0415 - an optional dependency

    match kind:
        case ArrayOf():
            return pa.list_(pa.field("element", arrow_type(kind.element)))
        case MapOf():
            return pa.map_(arrow_type(kind.key), arrow_type(kind.value))
        case StructOf():
            return pa.struct([(each.name, arrow_type(each.kind)) for each in kind.columns])
        case "timestamp":
            return pa.timestamp("us", "UTC")
        case _:
            names = {"bigint": "int64", "boolean": "bool", "int": "int32", "smallint": "int16"}
            return pa.type_for_alias(names.get(kind, kind))


def spark_type(kind: Kind) -> DataType:
    """Return Spark's own object for a type. Needs PySpark."""
    from pyspark.sql import types  # noqa: PLC0415 - an optional dependency

    match kind:
        case ArrayOf():
            return types.ArrayType(spark_type(kind.element))
        case MapOf():
            return types.MapType(spark_type(kind.key), spark_type(kind.value))
        case StructOf():
            structure = types.StructType()
            for each in kind.columns:
                structure.add(each.name, spark_type(each.kind), metadata={"comment": each.doc} if each.doc else None)
            return structure
        case _:
            scalars: dict[str, DataType] = {
                "bigint": types.LongType(),
                "boolean": types.BooleanType(),
                "double": types.DoubleType(),
                "int": types.IntegerType(),
                "smallint": types.ShortType(),
                "string": types.StringType(),
                "timestamp": types.TimestampType(),
            }
            return scalars[kind]
