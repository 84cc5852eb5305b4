"""A load: what is new in the inputs goes into the store, and everything that follows from it is made again.

A batch is pending from when bronze/file names its files until bronze/counts says where their rows went, which is
written last. Everything between is done over whole folders, `home=` and `batch=`, so doing it once more after a crash
gives the same. Pending batches come before new ones: a trace keeps the home it had before the crash.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.storagelevel import StorageLevel

from . import layers, streams
from .schema import BRONZE_LINE, COUNTS, EVENT, FILE, HEADER, OUTCOME, QUARANTINE, TRACE_HOME
from .silver import intake
from .troubles import Failed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import Column, DataFrame, Row, SparkSession

    from .layers import Step
    from .schema import Table
    from .silver.intake import Read
    from .store import Store

BECAME = ("event", "header", "test", "ignored", "duplicate", "quarantined")
"""The columns of bronze/counts that together are what was read."""


class TooManyBad(Failed):
    """More rows went to quarantine than is allowed. The batches stay pending: a later load may allow more."""


class Unbalanced(Exception):
    """Rows got lost, or came from nowhere: a bug of ours."""


@dataclass
class Loaded:
    """What a load has done. `counts` has a row for each file that was new, as in bronze/counts."""

    counts: list[Row] = field(default_factory=list)
    grown: list[str] = field(default_factory=list)
    """Files that were read by an earlier load and have another size now."""

    def rows(self, column: str) -> int:
        """The sum of a column of `counts`."""
        return sum(row[column] for row in self.counts)

    @property
    def bad_ratio(self) -> float:
        """The share of the rows that went to quarantine."""
        return self.rows("quarantined") / max(self.rows("read"), 1)


class Loader:
    """Loads inputs into a store. `tell` is told what is being done."""

    def __init__(self, spark: SparkSession, store: Store, tell: Callable[[str], None], max_bad_ratio: float) -> None:
        self.spark, self.store, self.tell, self.max_bad_ratio = spark, store, tell, max_bad_ratio

    def load(self, inputs: Sequence[str]) -> Loaded:
        """Finish what an earlier load has left, and load what is new.

        Raises store.Refused, TooManyBad, and Spark's own exceptions.
        """
        self.tell("looking for new files")
        loaded = Loaded()
        is_new = self.store.begin(self.spark, [stream.name for stream in streams.STREAMS])
        if not is_new:
            loaded.grown = self._grown(inputs)
            self._finish(loaded)
        self.tell("reading")
        streams.read_new(self.spark, self.store, inputs)
        self._finish(loaded)
        return loaded

    def _finish(self, loaded: Loaded) -> None:
        """Do what is to be done for all pending batches."""
        batches = self._pending()
        if not batches:
            return
        counts = [row for batch in batches for row in self._take(batch)]
        loaded.counts += counts
        if loaded.bad_ratio > self.max_bad_ratio:
            raise TooManyBad(
                f"{loaded.rows('quarantined')} of {loaded.rows('read')} rows are bad ({loaded.bad_ratio:.3%}), and"
                f" --max-bad-ratio allows {self.max_bad_ratio:.3%}: {self.store.path(QUARANTINE)} says what is wrong"
            )
        homes = self._homes(batches)
        for step in layers.PER_HOME:
            self._make(step, homes)
        for step in layers.OF_ALL:
            self.tell(step.table.path)
            self.store.write(step.make(*(self._rows(table) for table in step.takes)), step.table)
        names = [*COUNTS.names, *COUNTS.partitions]
        of_store = self.store.read(self.spark, COUNTS).schema
        done = [tuple(row[name] for name in names) for row in counts]
        self.store.write(self.spark.createDataFrame(done, of_store), COUNTS)

    def _pending(self) -> list[str]:
        """The batches that were read and are not finished, oldest first."""
        files, counts = (self.store.read(self.spark, table).select("batch").distinct() for table in (FILE, COUNTS))
        names = [row.batch for row in files.join(counts, "batch", "left_anti").collect()]
        return sorted(names, key=lambda name: (int(name.rpartition("-")[2]), name))

    def _take(self, batch: str) -> list[Row]:
        """From what was read to events, headers and outcomes; give the rows of bronze/counts."""
        self.tell(f"sorting out {batch}")
        read = self._parsed(batch)
        read.costly.persist(StorageLevel.DISK_ONLY)
        try:
            old = self._settle(batch, read)
            taken = intake.taken(read, self._known(batch, old))
            files = self._of(FILE, F.col("batch") == batch, "batch")
            counts: list[Row] = taken.counts.join(files, "source_file").select(*COUNTS.names, "batch").collect()
            for frame, table in ((taken.event, EVENT), (taken.header, HEADER), (taken.outcome, OUTCOME)):
                self.store.write(_at_home(frame, old, batch).withColumn("batch", F.lit(batch)), table)
            if any(row.quarantined for row in counts):
                self.store.write(taken.quarantine.withColumn("batch", F.lit(batch)), QUARANTINE)
        finally:
            read.costly.unpersist()
        self._balance(batch, counts)
        return counts

    def _parsed(self, batch: str) -> Read:
        if batch.startswith(streams.PARQUET.name):
            files = self._of(FILE, F.col("batch") == batch)
            return intake.typed(streams.rows_of(self.spark, [row.source_file for row in files.collect()]))
        return intake.parsed(self._of(BRONZE_LINE, F.col("batch") == batch))

    def _settle(self, batch: str, read: Read) -> DataFrame | None:
        """Write which traces are new. Gives those that are not with their `home`, or None if all are new."""
        named = read.rows.select("trace_id").unionByName(read.about.select("trace_id"))
        traces = named.where("trace_id is not null").distinct()
        settled = self._of(TRACE_HOME, F.col("home") != batch, "home")
        new = traces.join(settled, "trace_id", "left_anti")
        self.store.write(new.withColumn("home", F.lit(batch)), TRACE_HOME)
        old = settled.join(F.broadcast(traces), "trace_id", "left_semi")
        return None if old.isEmpty() else old

    def _known(self, batch: str, old: DataFrame | None) -> DataFrame | None:
        """The events of other batches that may be of the same traces."""
        if old is None:
            return None
        homes = [row.home for row in old.select("home").distinct().collect()]
        return self._of(EVENT, F.col("home").isin(homes) & (F.col("batch") != batch))

    def _balance(self, batch: str, counts: list[Row]) -> None:
        """Nothing gets lost: rows read are rows that became something, and the tables have them."""
        total = {name: sum(row[name] for row in counts) for name in ("read", *BECAME, "more")}
        of_batch = F.col("batch") == batch
        found = {"event": self._of(EVENT, of_batch).count(), "quarantined": self._of(QUARANTINE, of_batch).count()}
        if batch.startswith(streams.TEXT.name):
            found["read"] = self._of(BRONZE_LINE, of_batch).count()
        wanted = total | {"event": total["event"] + total["more"]}
        wrong = {name: n for name, n in found.items() if n != wanted[name]}
        if wrong or total["read"] != sum(total[name] for name in BECAME):
            raise Unbalanced(f"{batch} of {self.store.root}: counted {total}, and the tables have {found}")

    def _homes(self, batches: list[str]) -> list[str]:
        """The homes of all traces that these batches have rows of."""
        frames = (self.store.read(self.spark, table).select("home", "batch") for table in (EVENT, HEADER, OUTCOME))
        found = reduce(lambda a, b: a.unionByName(b), frames).where(F.col("batch").isin(batches))
        return sorted(row.home for row in found.select("home").distinct().collect())

    def _make(self, step: Step, homes: list[str]) -> None:
        """Write what a step makes of these homes."""
        self.tell(step.table.path)
        there = F.col("home").isin(homes)
        made = step.make(*(self._of(table, there) for table in step.takes))
        if len(homes) == 1:
            made = made.withColumn("home", F.lit(homes[0]))
        else:
            made = made.join(F.broadcast(self._of(TRACE_HOME, there, "home")), "trace_id")
        self.store.write_homes(made, step.table, homes)

    def _of(self, table: Table, where: Column, *more: str) -> DataFrame:
        """Some rows of a table, with its own columns and these."""
        return self.store.read(self.spark, table).where(where).select(*table.names, *more)

    def _rows(self, table: Table) -> DataFrame:
        return self.store.read(self.spark, table).select(*table.names)

    def _grown(self, inputs: Sequence[str]) -> list[str]:
        now = streams.listed(self.spark, inputs).withColumnRenamed("file_size", "now")
        before = self.store.read(self.spark, FILE)
        rows = now.join(before, "source_file").where("now != file_size").select("source_file").distinct().collect()
        return sorted(row.source_file for row in rows)


def _at_home(frame: DataFrame, old: DataFrame | None, batch: str) -> DataFrame:
    """With the column `home`: that of traces that are not new, else this batch."""
    if old is None:
        return frame.withColumn("home", F.lit(batch))
    return frame.join(F.broadcast(old), "trace_id", "left").withColumn("home", F.coalesce("home", F.lit(batch)))
