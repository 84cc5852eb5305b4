"""A load: ingest the new files, then rebuild every table that depends on them.

A batch is pending from the time bronze/file lists its files until bronze/counts accounts for its rows, which is the
last write. Every write in between replaces whole folders (`home=`, `batch=`), so a repetition after a crash gives the
same result. Pending batches are finished before new ones start: a trace keeps the home it had before the crash.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING, Any

from pyspark import cloudpickle
from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql.utils import is_remote
from pyspark.storagelevel import StorageLevel

import koordinator

from . import file_streams, layers
from .file_streams import LogOptions
from .fold.frames import FOLD
from .job_errors import JobFailed
from .lock import locked
from .schema import BRONZE_LINE, COUNTS, EVENT, FILE, HEADER, OUTCOME, QUARANTINE, TRACE_HOME
from .silver import intake
from .silver.logs import records

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import Column, DataFrame, Row, SparkSession

    from .layers import Step
    from .schema import Table
    from .silver.intake import ParsedRows
    from .store import Store

COUNT_COLUMNS = ("event", "header", "test", "ignored", "duplicate", "quarantined")
"""The columns of bronze/counts that add up to the rows read."""


BAD_SHOWN = 5
"""Number of quarantined rows that a load names."""


class TooManyBad(JobFailed):
    """More rows are in quarantine than allowed. The batches stay pending: a later load may allow more."""


class Unbalanced(Exception):
    """Rows were lost or duplicated: a bug in the pipeline."""


@dataclass
class LoadResult:
    """The result of a load. `counts` has the row of bronze/counts for each new file."""

    counts: list[Row] = field(default_factory=list)
    bad: list[Row] = field(default_factory=list)
    """The first BAD_SHOWN rows of bronze/quarantine."""
    changed: list[str] = field(default_factory=list)
    """Files whose size has changed since an earlier load read them."""

    def rows(self, column: str) -> int:
        """Return the sum of a column of `counts`."""
        return sum(row[column] for row in self.counts)

    @property
    def bad_ratio(self) -> float:
        """Share of the rows that are in quarantine."""
        return self.rows("quarantined") / max(self.rows("read"), 1)

    @property
    def unknown(self) -> list[str]:
        """The files without any known line."""
        return sorted(row.source_file for row in self.counts if row.source == intake.UNKNOWN)

    def bad_lines(self) -> list[str]:
        """Return one line for each row in `bad`: file, line number, reason and detail."""
        places = ((row, f":{row.line_no}" if row.line_no else "") for row in self.bad)
        return [f"  {row.source_file}{line}: {row.reason}: {row.detail}" for row, line in places]


class Loader:
    """Loads inputs into a store, and reports each step to `report_progress`."""

    def __init__(
        self,
        spark: SparkSession,
        store: Store,
        report_progress: Callable[[str], None],
        max_bad_ratio: float,
        options: LogOptions | None = None,
    ) -> None:
        self.spark, self.store, self.max_bad_ratio = spark, store, max_bad_ratio
        self._options = options or LogOptions()
        self.report_progress = report_progress
        self._folded: DataFrame

    def load(self, inputs: Sequence[str]) -> LoadResult:
        """Finish the batches that an earlier load left pending, and load the new files.

        Raises JobRefused, also if another load writes to the store, TooManyBad, and Spark's own exceptions.
        """
        # with Spark Connect the store is the server's
        with nullcontext() if is_remote() else locked(self.store.root):
            return self._load(inputs)

    def _load(self, inputs: Sequence[str]) -> LoadResult:
        _send_code(self.spark)
        self.report_progress("looking for new files")
        loaded = LoadResult()
        is_new = self.store.open(self.spark, [stream.name for stream in file_streams.STREAMS])
        if not is_new:
            loaded.changed = [] if self._options.follow else self._changed_files(inputs)
            self._finish(loaded)
        self.report_progress("reading")
        file_streams.read_new(self.spark, self.store, inputs, self._options)
        self._finish(loaded)
        return loaded

    def _finish(self, loaded: LoadResult) -> None:
        """Ingest all pending batches and rebuild the tables that depend on them."""
        batches = self.store.unfinished(self.spark)
        if not batches:
            return
        counts = [row for batch in batches for row in self._ingest(batch)]
        loaded.counts += counts
        if any(row.quarantined for row in counts):
            bad = self._select(QUARANTINE, F.col("batch").isin(batches)).orderBy("source_file", "line_no")
            loaded.bad = (loaded.bad + bad.limit(BAD_SHOWN).collect())[:BAD_SHOWN]
        if loaded.bad_ratio > self.max_bad_ratio:
            raise TooManyBad(
                f"{loaded.rows('quarantined')} of {loaded.rows('read')} rows are bad ({loaded.bad_ratio:.3%}),"
                f" more than --max-bad-ratio {self.max_bad_ratio:.3%}; all are in {self.store.path(QUARANTINE)}:\n"
                + "\n".join(loaded.bad_lines())
            )
        homes = self._homes(batches)
        for step in layers.PER_HOME_STEPS:
            self._build(step, homes)
        self._folded.unpersist()
        for step in layers.STORE_STEPS:
            self.report_progress(step.table.path)
            self.store.write(step.build(*(self._rows(table) for table in step.inputs)), step.table)
        names = [*COUNTS.names, *COUNTS.partitions]
        columns = self.store.read(self.spark, COUNTS).schema
        rows = [tuple(row[name] for name in names) for row in counts]
        self.store.write(self.spark.createDataFrame(rows, columns), COUNTS)

    def _ingest(self, batch: str) -> list[Row]:
        """Write the events, headers and outcomes of a batch; return its rows of bronze/counts."""
        self.report_progress(f"ingesting {batch}")
        rows = self._parse(batch)
        rows.expensive.persist(StorageLevel.DISK_ONLY)
        try:
            old = self._assign_homes(batch, rows)
            ingested = intake.ingest(rows, self._earlier_events(batch, old))
            files = self._select(FILE, F.col("batch") == batch, "batch")
            counts: list[Row] = ingested.counts.join(files, "source_file").select(*COUNTS.names, "batch").collect()
            for frame, table in (
                (ingested.event, EVENT),
                (ingested.header, HEADER),
                (ingested.outcome, OUTCOME),
            ):
                self.store.write(_with_home(frame, old, batch).withColumn("batch", F.lit(batch)), table)
            if any(row.quarantined for row in counts):
                self.store.write(ingested.quarantine.withColumn("batch", F.lit(batch)), QUARANTINE)
        finally:
            rows.expensive.unpersist()
        self._check_balance(batch, counts)
        return counts

    def _parse(self, batch: str) -> ParsedRows:
        if batch.startswith(file_streams.PARQUET.name):
            files = self._select(FILE, F.col("batch") == batch)
            return intake.parse_table(
                file_streams.read_parquet(self.spark, [row.source_file for row in files.collect()])
            )
        file = self._select(FILE, F.col("batch") == batch).first()
        options = LogOptions(file.cluster, file.time_zone or self._options.time_zone) if file else self._options
        lines = self._select(BRONZE_LINE, F.col("batch") == batch)
        earlier = self._last_events() if batch.startswith(file_streams.GROWN.name) else None
        return intake.parse_lines(lines, options.cluster, options.time_zone, earlier)

    def _last_events(self) -> DataFrame:
        """Return the last event of each log and broker: `trace_id`, `seq`, `group_us`."""
        of_logs = self._select(EVENT, F.col("source") != "koordinator")
        return of_logs.groupBy("trace_id", records.node_of(F.col("seq")).alias("of_node")).agg(
            F.max("seq").alias("last_seq"), F.max("group_us").alias("last_group_us")
        )

    def _assign_homes(self, batch: str, parsed: ParsedRows) -> DataFrame | None:
        """Record the home of new traces. Return the other traces with their `home`, or None if all are new."""
        identified = parsed.rows.select("trace_id").unionByName(parsed.metadata.select("trace_id"))
        traces = identified.where("trace_id is not null").distinct()
        settled = self._select(TRACE_HOME, F.col("home") != batch, "home")
        new = traces.join(settled, "trace_id", "left_anti")
        self.store.write(new.withColumn("home", F.lit(batch)), TRACE_HOME)
        old = settled.join(F.broadcast(traces), "trace_id", "left_semi")
        return None if old.isEmpty() else old

    def _earlier_events(self, batch: str, old: DataFrame | None) -> DataFrame | None:
        """Return the events of other batches that may belong to the same traces."""
        if old is None:
            return None
        homes = [row.home for row in old.select("home").distinct().collect()]
        return self._select(EVENT, F.col("home").isin(homes) & (F.col("batch") != batch))

    def _check_balance(self, batch: str, counts: list[Row]) -> None:
        """Raise Unbalanced unless every row read is accounted for and the tables agree."""
        total = {name: sum(row[name] for row in counts) for name in ("read", *COUNT_COLUMNS, "more")}
        of_batch = F.col("batch") == batch
        actual = {
            "event": self._select(EVENT, of_batch).count(),
            "quarantined": self._select(QUARANTINE, of_batch).count(),
        }
        if not batch.startswith(file_streams.PARQUET.name):
            actual["read"] = self._select(BRONZE_LINE, of_batch).count()
        expected = total | {"event": total["event"] + total["more"]}
        mismatched = {name: n for name, n in actual.items() if n != expected[name]}
        if mismatched or total["read"] != sum(total[name] for name in COUNT_COLUMNS):
            raise Unbalanced(f"{batch} of {self.store.root}: counted {total}, but the tables have {actual}")

    def _homes(self, batches: list[str]) -> list[str]:
        """Return the homes of all traces with rows in these batches."""
        frames = (self.store.read(self.spark, table).select("home", "batch") for table in (EVENT, HEADER, OUTCOME))
        homes = reduce(lambda a, b: a.unionByName(b), frames).where(F.col("batch").isin(batches))
        return sorted(row.home for row in homes.select("home").distinct().collect())

    def _build(self, step: Step, homes: list[str]) -> None:
        """Build the table of a step for these homes and write it."""
        self.report_progress(step.table.path)
        is_affected = F.col("home").isin(homes)
        inputs = (self._folded if table is FOLD else self._select(table, is_affected) for table in step.inputs)
        frame = step.build(*inputs)
        if step.table is FOLD:
            self._folded = frame.persist(StorageLevel.DISK_ONLY)
            return
        if len(homes) == 1:
            frame = frame.withColumn("home", F.lit(homes[0]))
        else:
            frame = frame.join(F.broadcast(self._select(TRACE_HOME, is_affected, "home")), "trace_id")
        self.store.write_homes(frame, step.table, homes)

    def _select(self, table: Table, where: Column, *more: str) -> DataFrame:
        """Return the matching rows of a table, with its own columns and `more`."""
        return self.store.read(self.spark, table).where(where).select(*table.names, *more)

    def _rows(self, table: Table) -> DataFrame:
        return self.store.read(self.spark, table).select(*table.names)

    def _changed_files(self, inputs: Sequence[str]) -> list[str]:
        now = file_streams.list_files(self.spark, inputs).withColumnRenamed("file_size", "now")
        before = self.store.read(self.spark, FILE)
        rows = now.join(before, "source_file").where("now != file_size").select("source_file").distinct().collect()
        return sorted(row.source_file for row in rows)


def _send_code(spark: SparkSession) -> None:
    """Let Spark send koordinator's functions by value, unless all of Spark runs in this Python environment."""
    if is_remote() or not (spark.conf.get("spark.master") or "").startswith("local"):
        pickling: Any = cloudpickle
        pickling.register_pickle_by_value(koordinator)


def _with_home(frame: DataFrame, old: DataFrame | None, batch: str) -> DataFrame:
    """Add the column `home`: the known home of an old trace, else this batch."""
    if old is None:
        return frame.withColumn("home", F.lit(batch))
    return frame.join(F.broadcast(old), "trace_id", "left").withColumn("home", F.coalesce("home", F.lit(batch)))
