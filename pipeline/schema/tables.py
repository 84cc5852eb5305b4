"""Definition of a table, the column types, and the columns that many tables share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from .kinds import ArrayOf, Kind, MapOf, StructOf, TableColumn, arrow_type, spark_type

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructField, StructType

STRING, INT, LONG, SHORT = "string", "int", "bigint", "smallint"
DOUBLE, BOOL, TIMESTAMP, STRINGS = "double", "boolean", "timestamp", ArrayOf("string")
PARTITIONS = MapOf(STRING, ArrayOf(INT))
"""Topic -> partitions."""

OFFSET = StructOf((TableColumn("topic", STRING), TableColumn("partition", INT), TableColumn("offset", LONG)))


@dataclass(frozen=True, slots=True)
class Table:
    """A table in the folder `layer/name`; `key` identifies a row.

    The columns of `origin` tell how a row came into the store: the home of its trace, and the batch that brought it.
    """

    layer: str
    name: str
    doc: str
    key: tuple[str, ...]
    definitions: tuple[TableColumn, ...]
    origin: tuple[str, ...] = ("home",)

    @property
    def path(self) -> str:
        """Path of the table in the store."""
        return f"{self.layer}/{self.name}"

    @property
    def stored(self) -> tuple[TableColumn, ...]:
        """The columns in the store: those of the table, and those of its origin."""
        return (*self.definitions, *(TableColumn(name, STRING) for name in self.origin))

    @property
    def columns(self) -> StructType:
        """The columns of the table, for Spark."""
        return _struct(self.definitions)

    @property
    def arrow(self) -> pa.Schema:
        """The columns of the table, for PyArrow."""
        return _arrow_schema(self.definitions)

    @property
    def stored_arrow(self) -> pa.Schema:
        """The columns in the store, for PyArrow."""
        return _arrow_schema(self.stored)

    @property
    def fields(self) -> list[StructField]:
        """The columns in the store, for Spark."""
        fields: list[StructField] = _struct(self.stored).fields
        return fields

    @property
    def names(self) -> list[str]:
        """Names of the columns, in order."""
        return [each.name for each in self.definitions]


# cached functions would not go to Spark's workers, which have no koordinator
def _struct(columns: tuple[TableColumn, ...]) -> StructType:
    return cast("StructType", spark_type(StructOf(columns)))


def _arrow_schema(columns: tuple[TableColumn, ...]) -> pa.Schema:
    import pyarrow as pa  # noqa: PLC0415 - an optional dependency

    return pa.schema([(each.name, arrow_type(each.kind)) for each in columns])


def table(path: str, doc: str, *columns: tuple[str, Kind, str], key: str, origin: tuple[str, ...] = ("home",)) -> Table:
    """Define a table at `layer/name`; each column has a name, a type, and a description."""
    layer, _, name = path.partition("/")
    return Table(layer, name, doc, tuple(key.split()), tuple(TableColumn(*each) for each in columns), origin)


TRACE_ID = ("trace_id", STRING, "the trace of one cluster, or of one log")
RUN_ID = ("run_id", STRING, "the run of a test suite, named by CI; for a log, its trace")
TEST_ID = ("test_id", STRING, "the test, as named by pytest")
CLUSTER = ("cluster", STRING, "the cluster's id")
GROUP_ID = ("group_id", STRING, "the group")
TRACE_COLUMNS = (TRACE_ID, RUN_ID, TEST_ID, CLUSTER, GROUP_ID)
REBALANCE_NO = ("rebalance_no", INT, "number of the rebalance in its group, from 1")
MEMBER_NAME = ("member", STRING, "the member: its group.instance.id if it is static, else its member id")
CLIENT = (
    ("client_id", STRING, "client.id"),
    ("principal", STRING, "the user: User:alice; null if it has not authenticated"),
    ("client_software", STRING, "the client library, from ApiVersions (KIP-511)"),
    ("client_version", STRING, "its version"),
)
