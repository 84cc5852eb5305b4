"""A load: ingest the new files, then rebuild every table that depends on them.

Everything is written into new folders and becomes visible with the last write, the snapshot. So a load that fails or is
killed changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError
from pyspark import cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql.utils import is_remote
from pyspark.storagelevel import StorageLevel

import koordinator

from . import input_files, layers
from .continuation import Continuation
from .fold.frames import FOLD, unfolded
from .frames import from_rows, in_driver, select_schema
from .input_files import PACKED, PARQUET, LogOptions, unpacked_bytes
from .job_errors import JobFailed
from .lock import locked
from .schema import (
    BRONZE_LINE,
    COUNTS,
    EVENT,
    FILE,
    HEADER,
    OUTCOME,
    QUARANTINE,
    TRACE,
    TRACE_HOME,
    UNREAD,
    UNREAD_KINDS,
)
from .silver import intake
from .silver.logs.reader import FOREIGN
from .silver.logs.sequence import NODE_MASK

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pyspark.sql import DataFrame, Row, SparkSession

    from .layers import Step
    from .schema import Table
    from .silver.intake import ParsedRows
    from .store import Draft, Store

COUNT_COLUMNS = ("event", "header", "test", "ignored", "duplicate", "quarantined")
"""The columns of bronze/counts that add up to the rows read."""

SMALL_BYTES = 4 << 20
"""Bytes of new lines, and of files in the store, up to which the driver keeps and writes the rows of a load itself."""

BAD_SHOWN = 5
"""Number of quarantined rows that a load names."""

FILES_SHOWN, KINDS_SHOWN, EXAMPLE_MAX = 10, 5, 120
"""Number of logs whose lines were not understood that a load names, of their kinds, and of characters of an example."""


class TooManyBad(JobFailed):
    """More rows are invalid than allowed; nothing was loaded."""


class Unbalanced(Exception):
    """Rows were lost or duplicated: a bug in the pipeline."""


@dataclass
class LoadResult:
    """The result of a load. `counts` has the row of bronze/counts for each new file."""

    n_files: int = 0
    """Number of input files that are not empty, new or not."""
    counts: list[Row] = field(default_factory=list)
    bad: list[Row] = field(default_factory=list)
    """The first BAD_SHOWN rows of bronze/quarantine."""
    unread: list[Row] = field(default_factory=list)
    """The rows of bronze/unread: the lines of logs that were not understood."""
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
    def refused_ratio(self) -> float:
        """Share of the rows that count for `--max-bad-ratio`.

        Those of logs do not while such logs have no more than half of the rows: one small log never refuses a folder.
        """
        of_logs = [row for row in self.counts if row.quarantined and row.source not in (None, "koordinator")]
        if 2 * sum(row.read for row in of_logs) > self.rows("read"):
            return self.bad_ratio
        others = self.rows("quarantined") - int(sum(row.quarantined for row in of_logs))
        return others / max(self.rows("read"), 1)

    @property
    def unknown(self) -> list[str]:
        """The files without any known line."""
        return sorted(row.source_file for row in self.counts if row.source == intake.UNKNOWN)

    def bad_lines(self) -> list[str]:
        """Return one line for each row in `bad`: file, line number, reason and detail."""
        places = ((row, f":{row.line_no}" if row.line_no else "") for row in self.bad)
        return [f"  {row.source_file}{line}: {row.reason}: {row.detail}" for row, line in places]

    def unread_lines(self) -> list[str]:
        """Return lines of text: for each log the number of lines that were not understood, and examples."""
        read = {row.source_file: row.read for row in self.counts}
        by_file: dict[str, list[Row]] = {}
        for row in self.unread:
            by_file.setdefault(row.source_file, []).append(row)
        shown = sorted(by_file, key=lambda name: (-_number(by_file[name], but=FOREIGN), -_number(by_file[name]), name))
        result = []
        for name in shown[:FILES_SHOWN]:
            rows = sorted(by_file[name], key=lambda row: ([*UNREAD_KINDS].index(row.kind), -row.n, row.text))
            result.append(f"  {name}: {_number(rows):,} of {read[name]:,} lines were not understood")
            result += [f"    {row.n:,} {row.kind}: {_example(row.example)}" for row in rows[:KINDS_SHOWN]]
            if rest := rows[KINDS_SHOWN:]:
                result.append(f"    {_number(rest):,} with {len(rest):,} other texts")
        if more := shown[FILES_SHOWN:]:
            result.append(f"  and lines of {len(more):,} other files: bronze/unread has all")
        return result


def _number(rows: Iterable[Row], but: str | None = None) -> int:
    return sum(row.n for row in rows if row.kind != but)


def _example(text: str) -> str:
    return text if len(text) <= EXAMPLE_MAX else f"{text[:EXAMPLE_MAX]}…"


@dataclass(frozen=True, slots=True)
class _Batch:
    """The new `events` of a load of one kind, the homes of their traces, and the known traces among these."""

    homes: list[str]
    events: DataFrame
    touched: list[str]


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
        self._folded: dict[str, DataFrame] = {}
        self._draft: Draft
        self._continuation: Continuation

    def load(self, inputs: Sequence[str]) -> LoadResult:
        """Load the new files. If anything fails, the tables stay as they were.

        Raises JobRefused, also if another load writes to the store, JobFailed, and Spark's own exceptions.
        """
        with locked(self.store.local):
            try:
                return self._load(inputs)
            finally:
                self.spark.catalog.clearCache()

    def _load(self, inputs: Sequence[str]) -> LoadResult:
        _send_code(self.spark)
        self.report_progress("looking for new files")
        self._draft = self.store.begin(self.spark)
        files = input_files.list_files(self.spark, inputs)
        sizes: dict[str, set[int]] = {}
        for row in self._draft.read(FILE).select("source_file", "file_size").collect():
            sizes.setdefault(row.source_file, set()).add(row.file_size)
        kinds: dict[str, list[Row]] = {"text": [], "parquet": [], "grown": []}
        for row in files:
            if self._options.follow and not row.source_file.endswith((*PACKED, PARQUET)):
                kinds["grown"].append(row)
            elif row.source_file not in sizes:
                kinds["parquet" if row.source_file.endswith(PARQUET) else "text"].append(row)
        changed = {row.source_file for row in files if row.file_size not in sizes.get(row.source_file, {row.file_size})}
        loaded = LoadResult(len(files), changed=[] if self._options.follow else sorted(changed))
        new = sum(unpacked_bytes(row.source_file, row.file_size) for rows in kinds.values() for row in rows)
        self._draft.is_small = new <= SMALL_BYTES and self._draft.has_at_most(SMALL_BYTES)
        batches = [batch for kind, rows in kinds.items() if rows and (batch := self._ingest(kind, rows, loaded))]
        if batches:
            self._check_quality(loaded)
            homes = sorted({home for batch in batches for home in batch.homes})
            touched = {trace_id for batch in batches for trace_id in batch.touched}
            self._continuation = Continuation(self._draft, homes, [batch.events for batch in batches], touched)
            self._rebuild(homes)
            self._draft.commit()
        return loaded

    def _check_quality(self, loaded: LoadResult) -> None:
        if loaded.refused_ratio > self.max_bad_ratio:
            raise TooManyBad(
                f"{loaded.rows('quarantined')} of {loaded.rows('read')} rows are bad ({loaded.bad_ratio:.3%}),"
                f" more than --max-bad-ratio {self.max_bad_ratio:.3%}, and nothing was loaded. With a greater ratio"
                " bronze/quarantine gets all of them. The first:\n" + "\n".join(loaded.bad_lines())
            )

    def _rebuild(self, homes: list[str]) -> None:
        """Rebuild all tables that depend on the traces of these homes."""
        for step in layers.PER_HOME_STEPS:
            self._build(step, homes)
        for step in layers.STORE_STEPS:
            self.report_progress(step.table.path)
            inputs = (self._draft.read(table).select(*table.names) for table in step.inputs)
            self._draft.replace(step.build(*inputs), step.table)

    def _ingest(self, kind: str, files: list[Row], loaded: LoadResult) -> _Batch | None:
        """Add the events, headers, outcomes and invalid rows of some files; None if they have no new row."""
        batch = f"{kind}-{self._draft.number}"
        self.report_progress(f"ingesting {batch}")
        read = self._read(kind, batch, files)
        if read is None:
            return None
        rows, lines, files_read = read
        if not rows.is_small:
            rows.expensive.persist(StorageLevel.DISK_ONLY)
        try:
            old = self._assign_homes(batch, rows)
            touched = {} if old is None else {row.trace_id: row.home for row in old.collect()}
            old_homes = sorted({*touched.values()})
            homes = sorted({batch, *old_homes})
            ingested = intake.ingest(rows, self._draft.read(EVENT, old_homes) if old_homes else None)
            ids = files_read.select("source_file", "ingest_id")
            counts: list[Row] = ingested.counts.join(ids, "source_file").select(*COUNTS.names).collect()
            event = self._append(_with_home(ingested.event, old, batch), EVENT, batch, homes)
            self._append(_with_home(ingested.header, old, batch), HEADER, batch, homes)
            self._append(_with_home(ingested.outcome, old, batch), OUTCOME, batch, homes)
            if any(row.quarantined for row in counts):
                bad = self._append(ingested.quarantine, QUARANTINE, batch).orderBy("source_file", "line_no")
                loaded.bad = (loaded.bad + bad.limit(BAD_SHOWN).collect())[:BAD_SHOWN]
        finally:
            rows.expensive.unpersist()
        self._append(from_rows(self.spark, counts, COUNTS.columns), COUNTS, batch)
        if ingested.unread is not None:
            loaded.unread += self._append(ingested.unread, UNREAD, batch).collect()
        loaded.counts += counts
        written = {"event": event.count()} | ({} if lines is None else {"read": lines.count()})
        self._check_balance(batch, counts, written)
        return _Batch(homes, event, [*touched])

    def _read(self, kind: str, batch: str, files: list[Row]) -> tuple[ParsedRows, DataFrame | None, DataFrame] | None:
        """Return the rows of some files of a kind, their lines of text, and the files; None if there is no new row."""
        names = [row.path for row in files]
        listed = from_rows(self.spark, files)
        earlier, small = None, self._draft.is_small
        if kind == "parquet":
            read = self._append_files(listed, batch)
            return intake.parse_table(input_files.read_parquet(self.spark, names), small=small), None, read
        if kind == "grown":
            grown = input_files.read_grown(self.spark, files, self._draft.read(FILE))
            if grown is None:
                return None
            new, listed = grown
            earlier = self._last_events()
            lines = self._append(new, BRONZE_LINE, batch)
        else:
            lines = self._read_lines(names, batch)
        read = self._append_files(listed, batch)
        options = self._options
        return intake.parse_lines(lines, options.cluster, options.time_zone, earlier, small=small), lines, read

    def _read_lines(self, names: list[str], batch: str) -> DataFrame:
        try:
            return self._append(input_files.read_lines(self.spark, names), BRONZE_LINE, batch)
        except (PySparkException, Py4JError):
            damaged = input_files.damaged_files(self.spark, names)
            if not damaged:
                raise
            return self._append(input_files.read_lines(self.spark, names, damaged), BRONZE_LINE, batch)

    def _append_files(self, files: DataFrame, batch: str) -> DataFrame:
        return self._append(select_schema(files.withColumns(self._options.columns()), FILE), FILE, batch)

    def _append(self, frame: DataFrame, table: Table, batch: str, homes: Sequence[str] = ()) -> DataFrame:
        """Add rows of a batch to a table; return its columns of them."""
        return self._draft.append(frame.withColumn("batch", F.lit(batch)), table, batch, homes).select(*table.names)

    def _last_events(self) -> DataFrame:
        """Return the last event of each log and broker: `trace_id`, `seq`, `group_us`."""
        of_logs = self._draft.read(EVENT).where(F.col("source") != "koordinator")
        return of_logs.groupBy("trace_id", F.col("seq").bitwiseAND(NODE_MASK).alias("of_node")).agg(
            F.max("seq").alias("last_seq"), F.max("group_us").alias("last_group_us")
        )

    def _assign_homes(self, batch: str, parsed: ParsedRows) -> DataFrame | None:
        """Record the home of new traces. Return the other traces with their `home`, or None if all are new."""
        identified = parsed.rows.select("trace_id").unionByName(parsed.metadata.select("trace_id"))
        traces = identified.where("trace_id is not null").distinct()
        known = traces.join(self._draft.read(TRACE_HOME), "trace_id", "left")
        known = in_driver(known) if parsed.is_small else known.persist()
        new = known.where("home IS NULL").withColumn("home", F.lit(batch))
        self._draft.append(new, TRACE_HOME, batch, [batch])
        old = known.where("home IS NOT NULL")
        return None if old.isEmpty() else old

    def _check_balance(self, batch: str, counts: list[Row], written: dict[str, int]) -> None:
        """Raise Unbalanced unless every row read is accounted for, and every line and event was written."""
        total = {name: sum(row[name] for row in counts) for name in ("read", *COUNT_COLUMNS, "more")}
        expected = total | {"event": total["event"] + total["more"]}
        if total["read"] != sum(total[name] for name in COUNT_COLUMNS) or written != {n: expected[n] for n in written}:
            raise Unbalanced(f"{batch} of {self.store.root}: counted {total}, but wrote {written}")

    def _build(self, step: Step, homes: list[str]) -> None:
        """Build the table of a step for these homes and write it."""
        self.report_progress(step.table.path)
        if step.table is FOLD:
            trace = self._draft.read(TRACE, homes)
            states, small = self._continuation.states, self._draft.is_small
            self._fold(step.build(self._continuation.events(), trace, states, small=small), homes)
            return
        made = self._folded.get(step.table.path)
        if made is None:
            frame = step.build(*(self._draft.read(table, homes).select(*table.names) for table in step.inputs))
            self._draft.write_homes(self._in_homes(frame, homes), step.table, homes)
        elif (kept := self._continuation.kept(step.table, made)) is not None:
            self._draft.write_homes(self._in_homes(kept, homes), step.table, homes)
        self._draft.replace_homes(step.table, homes)

    def _fold(self, rows: DataFrame, homes: list[str]) -> None:
        """Write the tables of the fold: where workers reach the store themselves, all of them in one job."""
        tables = [step.table for step in layers.PER_HOME_STEPS if step.inputs == (FOLD,)]
        rows = self._in_homes(rows, homes)
        if self.store.local is not None:
            self._folded = self._draft.write_tables(rows, tables, homes)
            return
        rows = rows.persist(StorageLevel.DISK_ONLY)
        self._folded = {table.path: self._draft.write_homes(unfolded(table, rows), table, homes) for table in tables}

    def _in_homes(self, frame: DataFrame, homes: list[str]) -> DataFrame:
        """Return rows with the `home` of their traces."""
        if len(homes) == 1:
            return frame.withColumn("home", F.lit(homes[0]))
        return frame.join(F.broadcast(self._draft.read(TRACE_HOME, homes)), "trace_id")


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
