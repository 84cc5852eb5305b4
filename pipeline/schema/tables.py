"""What a table is, the types of columns, and the columns that many tables have."""

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
    """A table. `key` names a row; its files are in the folder `layer/name`, in one folder for each of `partitions`."""

    layer: str
    name: str
    doc: str
    key: tuple[str, ...]
    columns: StructType
    partitions: tuple[str, ...] = ("home",)

    @property
    def path(self) -> str:
        """Where it is, in the store."""
        return f"{self.layer}/{self.name}"

    @property
    def names(self) -> list[str]:
        """The names of its columns, in their order."""
        names: list[str] = self.columns.fieldNames()
        return names


def table(
    path: str, doc: str, *columns: tuple[str, DataType, str], key: str, partitions: tuple[str, ...] = ("home",)
) -> Table:
    """A table at `layer/name`, with these columns: the name of each, its type, and what it says."""
    layer, _, name = path.partition("/")
    fields = [StructField(column, kind, nullable=True, metadata={"comment": says}) for column, kind, says in columns]
    return Table(layer, name, doc, tuple(key.split()), StructType(fields), partitions)


TRACE_ID = ("trace_id", STRING, "whose trace: one cluster's, or one log's")
RUN_ID = ("run_id", STRING, "the run of a test suite, as CI names it; of a log, its trace")
TEST_ID = ("test_id", STRING, "the test, as pytest names it")
CLUSTER = ("cluster", STRING, "the cluster's id")
GROUP_ID = ("group_id", STRING, "the group")
WHOSE = (TRACE_ID, RUN_ID, TEST_ID, CLUSTER, GROUP_ID)
REBALANCE_NO = ("rebalance_no", INT, "which rebalance of the group, from 1 on")
MEMBER_NAME = ("member", STRING, "the member: its group.instance.id if it is static, else its member id")
SOFTWARE = (
    ("client_id", STRING, "what the client calls itself"),
    ("client_software", STRING, "the client library, as it says in ApiVersions (KIP-511)"),
    ("client_version", STRING, "its version"),
)
