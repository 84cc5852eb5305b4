"""Definition of a table, the column types, and the columns that many tables share."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

STRING, INT, LONG, SHORT = StringType(), IntegerType(), LongType(), ShortType()
DOUBLE, BOOL, TIMESTAMP, STRINGS = DoubleType(), BooleanType(), TimestampType(), ArrayType(StringType())
PARTITIONS = MapType(StringType(), ArrayType(IntegerType()))
"""Topic -> partitions."""

OFFSET = StructType([StructField("topic", STRING), StructField("partition", INT), StructField("offset", LONG)])


@dataclass(frozen=True, slots=True)
class Table:
    """A table in the folder `layer/name`; `key` identifies a row.

    The columns of `origin` tell how a row came into the store: the home of its trace, and the batch that brought it.
    """

    layer: str
    name: str
    doc: str
    key: tuple[str, ...]
    columns: StructType
    origin: tuple[str, ...] = ("home",)

    @property
    def path(self) -> str:
        """Path of the table in the store."""
        return f"{self.layer}/{self.name}"

    @property
    def fields(self) -> list[StructField]:
        """The columns in the store: those of the table, and those of its origin."""
        return [*self.columns.fields, *(StructField(name, STRING) for name in self.origin)]

    @property
    def names(self) -> list[str]:
        """Names of the columns, in order."""
        names: list[str] = self.columns.fieldNames()
        return names


def table(
    path: str, doc: str, *columns: tuple[str, DataType, str], key: str, origin: tuple[str, ...] = ("home",)
) -> Table:
    """Define a table at `layer/name`; each column has a name, a type, and a description."""
    layer, _, name = path.partition("/")
    fields = [StructField(column, kind, nullable=True, metadata={"comment": text}) for column, kind, text in columns]
    return Table(layer, name, doc, tuple(key.split()), StructType(fields), origin)


TRACE_ID = ("trace_id", STRING, "the trace of one cluster, or of one log")
RUN_ID = ("run_id", STRING, "the run of a test suite, named by CI; for a log, its trace")
TEST_ID = ("test_id", STRING, "the test, as named by pytest")
CLUSTER = ("cluster", STRING, "the cluster's id")
GROUP_ID = ("group_id", STRING, "the group")
TRACE_COLUMNS = (TRACE_ID, RUN_ID, TEST_ID, CLUSTER, GROUP_ID)
REBALANCE_NO = ("rebalance_no", INT, "number of the rebalance in its group, from 1")
MEMBER_NAME = ("member", STRING, "the member: its group.instance.id if it is static, else its member id")
SOFTWARE = (
    ("client_id", STRING, "client.id"),
    ("client_software", STRING, "the client library, from ApiVersions (KIP-511)"),
    ("client_version", STRING, "its version"),
)
