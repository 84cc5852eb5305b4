"""A load: ingest the new files, then rebuild every table that depends on them.

Everything is written into new folders and becomes visible with the last write, the snapshot. So a load that fails or is
killed changes nothing.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

import koordinator

from . import layers, local_files
from .continuation import Continuation
from .fold.frames import FOLD, folded, unfolded, write_folded
from .frames import in_spark, like, rows_of, sql, table_of, with_constants
from .job_errors import JobFailed
from .local_files import PACKED, PARQUET, LogOptions, unpacked_bytes
from .lock import locked
from .queries import Row
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
from .silver.line_rows import UNKNOWN
from .silver.logs.reader import FOREIGN
from .silver.logs.sequence import NODE_MASK

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from types import ModuleType

    from pyspark.sql import DataFrame, SparkSession

    from .frames import Frame
    from .layers import Step
    from .schema import Table
    from .store import Draft, Store

COUNT_COLUMNS = ("event", "header", "test", "ignored", "duplicate", "quarantined")
"""The columns of bronze/counts that add up to the rows read."""

SMALL_BYTES, SMALL_STORE_BYTES = 128 << 20, 32 << 20
"""Bytes of input lines, and of files in the store, up to which a load keeps its rows in memory, without Spark."""

LAST_EVENTS = f"""
    SELECT trace_id, seq & {NODE_MASK} AS of_node, max(seq) AS last_seq, max(group_us) AS last_group_us
    FROM silver.event WHERE source != 'koordinator' GROUP BY 1, 2
"""  # noqa: S608 - a number
"""The last event of each log and broker."""

KNOWN_TRACES = "SELECT trace_id, home FROM {named} JOIN bronze.trace USING (trace_id)"

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
        return sorted(row.source_file for row in self.counts if row.source == UNKNOWN)

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
    events: Frame
    touched: list[str]


class Loader:
    """Loads inputs into a store, and reports each step to `report_progress`.

    `open_spark` returns the session. A load of little data on this machine keeps its rows in memory and needs none,
    unless Spark is `on_cluster`.
    """

    def __init__(
        self,
        open_spark: Callable[[], SparkSession],
        store: Store,
        report_progress: Callable[[str], None],
        max_bad_ratio: float,
        options: LogOptions | None = None,
        *,
        on_cluster: bool = False,
    ) -> None:
        self.open_spark, self.store, self.max_bad_ratio = open_spark, store, max_bad_ratio
        self._options, self._on_cluster = options or LogOptions(), on_cluster
        self.report_progress = report_progress
        self._spark: SparkSession | None = None
        self._folded: dict[str, Frame] = {}
        self._draft: Draft
        self._continuation: Continuation

    def load(self, inputs: Sequence[str]) -> LoadResult:
        """Load the new files. If anything fails, the tables stay as they were.

        Raises JobRefused, also if another load writes to the store, JobFailed, and Spark's own exceptions.
        """
        if self._on_cluster:
            # with Spark Connect the folder of the store is the server's
            self.open_spark()
        with locked(self.store.local):
            try:
                return self._load(inputs)
            finally:
                if self._spark is not None:
                    self._spark.catalog.clearCache()

    def _load(self, inputs: Sequence[str]) -> LoadResult:
        self.report_progress("looking for new files")
        loaded, kinds = self._begin(inputs)
        batches = [batch for kind, rows in kinds.items() if rows and (batch := self._ingest(kind, rows, loaded))]
        if batches:
            self._check_quality(loaded)
            homes = sorted({home for batch in batches for home in batch.homes})
            touched = {trace_id for batch in batches for trace_id in batch.touched}
            self._continuation = Continuation(self._draft, homes, [batch.events for batch in batches], touched)
            self._rebuild(homes)
            self._draft.commit()
        return loaded

    def _begin(self, inputs: Sequence[str]) -> tuple[LoadResult, dict[str, list[Row]]]:
        """Begin a load: in memory, if the store and the new files are small and on this machine, else by Spark."""
        self._spark = None
        files = None if self._on_cluster else local_files.list_files(inputs)
        if files is not None and self.store.has_at_most(SMALL_STORE_BYTES):
            self._draft = self.store.begin()
            loaded, kinds = self._new_files(files)
            new = (row for rows in kinds.values() for row in rows)
            if sum(unpacked_bytes(row.source_file, row.file_size) for row in new) <= SMALL_BYTES:
                return loaded, kinds
        self._spark = self.open_spark()
        _send_code(self._spark)
        self._draft = self.store.begin(self._spark)
        return self._new_files(_input_files().list_files(self._spark, inputs) if files is None else files)

    def _new_files(self, files: list[Row]) -> tuple[LoadResult, dict[str, list[Row]]]:
        """Return the new files by kind, and the result of a load that has not read them yet."""
        sizes: dict[str, set[int]] = {}
        for row in rows_of(self._draft.read(FILE).select(["source_file", "file_size"])):
            sizes.setdefault(row.source_file, set()).add(row.file_size)
        kinds: dict[str, list[Row]] = {"text": [], "parquet": [], "grown": []}
        for row in files:
            if self._options.follow and not row.source_file.endswith((*PACKED, PARQUET)):
                kinds["grown"].append(row)
            elif row.source_file not in sizes:
                kinds["parquet" if row.source_file.endswith(PARQUET) else "text"].append(row)
        changed = {row.source_file for row in files if row.file_size not in sizes.get(row.source_file, {row.file_size})}
        return LoadResult(len(files), changed=[] if self._options.follow else sorted(changed)), kinds

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
            self._draft.replace(step.build(*map(self._draft.read, step.inputs)), step.table)

    def _ingest(self, kind: str, files: list[Row], loaded: LoadResult) -> _Batch | None:
        """Add the events, headers, outcomes and invalid rows of some files; None if they have no new row."""
        batch = f"{kind}-{self._draft.number}"
        self.report_progress(f"ingesting {batch}")
        read = self._read(kind, batch, files)
        if read is None:
            return None
        rows, lines = read
        if not isinstance(rows, pa.Table) and lines is not None:
            rows = _kept_on_disk(rows)
        survey = intake.Survey.of(rows)
        old = self._assign_homes(batch, survey.traces())
        old_homes = sorted({*old.values()})
        homes = sorted({batch, *old_homes})
        known = sql("SELECT * FROM {old}", EVENT, old=self._draft.read(EVENT, old_homes)) if old else None
        ingested = intake.ingest(rows, survey, known, is_numbered=kind == "grown")
        ids = {row.source_file: row.ingest_id for row in files}
        counts = [Row(row, ingest_id=ids[row.source_file]) for row in rows_of(ingested.counts)]
        event = self._append(self._with_home(ingested.event, old, batch), EVENT, batch, homes)
        self._append(self._with_home(ingested.header, old, batch), HEADER, batch, homes)
        self._append(self._with_home(ingested.outcome, old, batch), OUTCOME, batch, homes)
        if any(row.quarantined for row in counts):
            bad = self._append(ingested.quarantine, QUARANTINE, batch)
            first = f"SELECT * FROM {{bad}} ORDER BY source_file, line_no LIMIT {BAD_SHOWN}"  # noqa: S608 - a number
            loaded.bad = (loaded.bad + rows_of(sql(first, bad=bad)))[:BAD_SHOWN]
        unread = rows_of(ingested.unread)
        self._append(like(rows, table_of(counts, COUNTS)), COUNTS, batch)
        if unread:
            loaded.unread += rows_of(self._append(like(rows, table_of(unread, UNREAD)), UNREAD, batch))
        loaded.counts += counts
        written = {"event": _count(event)} | ({} if lines is None else {"read": _count(lines)})
        self._check_balance(batch, counts, written)
        return _Batch(homes, event, [*old])

    def _read(self, kind: str, batch: str, files: list[Row]) -> tuple[Any, Frame | None] | None:
        """Return ROWS of some files of a kind, and their lines of text; None if there is no new row."""
        options, spark, earlier = self._options, self._spark, None
        if kind == "parquet":
            names = [row.path for row in files]
            rows = local_files.read_parquet(files) if spark is None else _input_files().read_parquet(spark, names)
            self._append_files(files, batch)
            return intake.parse_table(rows), None
        if kind == "grown":
            known = self._draft.read(FILE)
            read = local_files.read_grown(files, rows_of(known)) if spark is None else (
                _input_files().read_grown(spark, files, known))  # fmt: skip
            if read is None:
                return None
            new, files = read
            earlier = self._last_events()
            lines = self._append(new, BRONZE_LINE, batch)
        else:
            lines = self._read_lines(files, batch)
        self._append_files(files, batch)
        sources = [row.source_file for row in files]
        return intake.parse_lines(lines, sources, options.cluster, options.time_zone, earlier), lines

    def _read_lines(self, files: list[Row], batch: str) -> Any:  # noqa: ANN401 - a Frame
        if self._spark is None:
            return self._append(local_files.read_lines(files), BRONZE_LINE, batch)
        names = [row.path for row in files]
        try:
            return self._append(_input_files().read_lines(self._spark, names), BRONZE_LINE, batch)
        except Exception:
            damaged = _input_files().damaged_files(self._spark, names)
            if not damaged:
                raise
            return self._append(_input_files().read_lines(self._spark, names, damaged), BRONZE_LINE, batch)

    def _append_files(self, files: list[Row], batch: str) -> None:
        options = {"cluster": self._options.cluster, "time_zone": self._options.time_zone}
        self._append(self._frame(table_of([row | options for row in files], FILE)), FILE, batch)

    def _frame(self, rows: pa.Table) -> Any:  # noqa: ANN401 - a Frame
        return rows if self._spark is None else in_spark(self._spark, rows)

    def _append(self, frame: Frame, table: Table, batch: str, homes: Sequence[str] = ()) -> Any:  # noqa: ANN401
        """Add rows of a batch to a table; return its columns of them."""
        return self._draft.append(with_constants(frame, batch=batch), table, batch, homes).select(table.names)

    def _last_events(self) -> Any:  # noqa: ANN401 - a Frame
        """Return the last event of each log and broker."""
        return sql(LAST_EVENTS, silver_event=self._draft.read(EVENT))

    def _assign_homes(self, batch: str, traces: list[str]) -> dict[str, str]:
        """Record the home of new traces. Return the homes of the others."""
        named = self._frame(pa.table({"trace_id": pa.array(traces, pa.string())}))
        known = rows_of(sql(KNOWN_TRACES, named=named, bronze_trace=self._draft.read(TRACE_HOME)))
        homes = {row.trace_id: row.home for row in known}
        new = table_of([{"trace_id": each} for each in traces if each not in homes], TRACE_HOME)
        self._draft.append(with_constants(self._frame(new), home=batch), TRACE_HOME, batch, [batch])
        return homes

    def _with_home(self, frame: Frame, old: dict[str, str], batch: str) -> Any:  # noqa: ANN401 - a Frame
        """Add the column `home`: the known home of an old trace, else this batch."""
        if not old:
            return with_constants(frame, home=batch)
        homes = pa.table({"trace_id": [*old], "home": [*old.values()]})
        chosen = f"coalesce(home, '{batch}') AS home"
        query = f"SELECT rows.*, {chosen} FROM {{rows}} AS rows LEFT JOIN {{homes}} USING (trace_id)"  # noqa: S608
        return sql(query, rows=frame, homes=self._frame(homes))

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
            going_on = self._continuation
            self._fold(step.build(going_on.events(), self._draft.read(TRACE, homes), going_on.states), homes)
            return
        made = self._folded.get(step.table.path)
        if made is None:
            frame = step.build(*(self._draft.read(table, homes) for table in step.inputs))
            self._draft.write_homes(self._in_homes(frame, homes), step.table, homes)
        elif (kept := self._continuation.kept(step.table, made)) is not None:
            self._draft.write_homes(self._in_homes(kept, homes), step.table, homes)
        self._draft.replace_homes(step.table, homes)

    def _fold(self, rows: Frame, homes: list[str]) -> None:
        """Write the tables of the fold: where workers reach the store themselves, all of them in one job."""
        tables = [step.table for step in layers.PER_HOME_STEPS if step.inputs == (FOLD,)]
        if self.store.local is not None:
            write = lambda folders: {row.table_name for row in rows_of(write_folded(rows, folders))}  # noqa: E731
            self._folded = self._draft.write_tables(write, tables, homes)
            return
        made = _kept_on_disk(folded(rows))
        self._folded = {table.path: self._draft.write_homes(unfolded(table, made), table, homes) for table in tables}

    def _in_homes(self, frame: Frame, homes: list[str]) -> Any:  # noqa: ANN401 - a Frame
        """Return rows with the `home` of their traces."""
        if len(homes) == 1:
            return with_constants(frame, home=homes[0])
        query = "SELECT rows.*, home FROM {rows} AS rows JOIN bronze.trace USING (trace_id)"
        return sql(query, rows=frame, bronze_trace=self._draft.read(TRACE_HOME, homes))


def _input_files() -> ModuleType:
    from . import input_files  # noqa: PLC0415 - Spark's import takes a second

    return input_files


def _kept_on_disk(frame: DataFrame) -> DataFrame:
    from pyspark.storagelevel import StorageLevel  # noqa: PLC0415 - Spark's import takes a second

    # a query does not find the rows of `persist` again, if a function has made them
    return frame.localCheckpoint(storageLevel=StorageLevel.DISK_ONLY)


def _count(frame: Frame) -> int:
    return len(frame) if isinstance(frame, pa.Table) else frame.count()


def _send_code(spark: SparkSession) -> None:
    """Let Spark send koordinator's functions by value, unless all of Spark runs in this Python environment."""
    from pyspark import cloudpickle  # noqa: PLC0415 - Spark's import takes a second

    if "SPARK_CONNECT_MODE_ENABLED" in os.environ or not (spark.conf.get("spark.master") or "").startswith("local"):
        pickling: Any = cloudpickle
        pickling.register_pickle_by_value(koordinator)
