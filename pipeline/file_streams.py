"""The first half of a load: Spark file streams that read the files added since the last load, and then end.

The checkpoint of a stream records the files it has read. A stream numbers its batches, and repeats an unfinished batch
with the same number and files. So the writes of a batch replace those of a crashed attempt.
"""

from __future__ import annotations

from dataclasses import dataclass
from os.path import commonprefix
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from .bronze import lines
from .frames import select_schema
from .job_errors import JobRefused
from .schema import BRONZE_LINE, EVENT, FILE
from .store import overwrite

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamReader

    from .store import Store

TEXT_FILES = "{*.jsonl,*.jsonl.*,*.json,*.json.*,*.log,*.log.*,*.txt,*.txt.*}"
"""Names of files that are read as lines, including rotated and compressed ones: `server.log.2026-11-21-20.gz`."""

PARQUET_FILES = "*.parquet"

PACKED = r"\.(gz|zst|zstd|bz2|lz4|snappy|deflate)$"

PACKED_FILES = "{*.jsonl,*.json,*.log,*.txt}{,.*}.{gz,zst,zstd,bz2,lz4,snappy,deflate}"
"""The text files that cannot grow."""

MAX_FILE_AGE = "100000d"
"""By default a file stream ignores files more than a week older than the newest; the pipeline reads late files, too."""


@dataclass(frozen=True, slots=True)
class FileStream:
    """A kind of input files; `name` names it in the store."""

    name: str
    glob: str

    def batch(self, number: int) -> str:
        """Return the name of a batch in all tables."""
        return f"{self.name}-{number}"


TEXT = FileStream("text", TEXT_FILES)
PARQUET = FileStream("parquet", PARQUET_FILES)
GROWN = FileStream("grown", TEXT_FILES)
"""Not a stream of Spark, whose streams read a file once: the plain text files that `watch` follows."""

STREAMS = (TEXT, PARQUET)


def list_files(spark: SparkSession, inputs: Sequence[str]) -> DataFrame:
    """Return the existing input files: `source_file`, `file_size`."""
    frames = [
        spark.read.format("binaryFile")
        .option("recursiveFileLookup", value=True)
        .option("pathGlobFilter", stream.glob)
        .load(list(inputs))
        .select(F.col("path").alias("source_file"), F.col("length").alias("file_size"))
        for stream in STREAMS
    ]
    return frames[0].unionByName(frames[1])


@dataclass(frozen=True, slots=True)
class LogOptions:
    """What a load knows about its logs: the brokers' `cluster`, the zone of times that name none, and if they grow."""

    cluster: str | None = None
    time_zone: str = "UTC"
    follow: bool = False

    def columns(self) -> dict[str, Column]:
        """Return the columns of bronze/file: a load that finishes another one uses its options."""
        return {"cluster": F.lit(self.cluster).cast("string"), "time_zone": F.lit(self.time_zone)}


def read_new(spark: SparkSession, store: Store, inputs: Sequence[str], options: LogOptions) -> None:
    """Write the lines of new text files to bronze/line, and the names of all new files to bronze/file.

    A compressed text file that cannot be read as a whole becomes one line without text.
    """
    if options.follow:
        _read_grown(spark, store, inputs, options)
    pattern = combined_glob(inputs)
    damaged: list[str] = []
    while True:
        reader = _reader(spark, PACKED_FILES if options.follow else TEXT.glob).option(
            "ignoreCorruptFiles", value=bool(damaged)
        )
        write = _lines_writer(store.path(BRONZE_LINE), store.path(FILE), options, damaged)
        try:
            _run(lines.select_lines(reader.text(pattern)), store, TEXT, write)
            break
        except StreamingQueryException:
            damaged = [] if damaged else _damaged_files(spark, store, inputs)
            if not damaged:
                raise
    table = lines.select_files(_reader(spark, PARQUET.glob).schema(EVENT.columns).parquet(pattern))
    _run(table, store, PARQUET, _files_writer(store.path(FILE), options))


def _read_grown(spark: SparkSession, store: Store, inputs: Sequence[str], options: LogOptions) -> None:
    """Write the complete lines that plain text files have gained; a file that has begun anew is read from its start."""
    number = F.regexp_extract("batch", rf"^{GROWN.name}-(\d+)$", 1).try_cast("int")
    known = store.read(spark, FILE).withColumn("number", number).where("n_lines IS NOT NULL")
    last = F.max_by(
        F.struct(F.col("file_size").alias("old_size"), "n_lines", F.col("first_line").alias("head")), "number"
    )
    known = known.groupBy("source_file").agg(last.alias("last")).select("source_file", "last.*")
    # read now: the batch that is written next would be part of it
    known = spark.createDataFrame(known.collect(), known.schema)
    now = list_files(spark, inputs).where(~F.col("source_file").rlike(rf"{PACKED}|\.parquet$"))
    is_new = F.coalesce(F.col("file_size") != F.col("old_size"), F.col("file_size") > 0)
    grown = [row.source_file for row in now.join(known, "source_file", "left").where(is_new).collect()]
    if not grown:
        return
    numbers = store.read(spark, FILE).select(F.max(number).alias("last")).first()
    batch = F.lit(GROWN.batch(0 if numbers is None or numbers.last is None else numbers.last + 1))
    read = lines.whole_lines(spark.read.option("lineSep", "\n").text(grown))
    read = read.join(F.broadcast(known), "source_file", "left")
    continues = (F.col("first_line") == F.col("head")) & (F.col("file_size") >= F.col("old_size"))
    read = read.withColumn("start", F.when(continues, F.col("n_lines")).otherwise(0))
    # the new lines of a file are one part, whose position is that of its first line
    position = F.min("block_start").over(Window.partitionBy("source_file"))
    new = read.where("row_id >= start").withColumns(
        {"block_start": position, "ingested_at": F.current_timestamp(), "batch": batch}
    )
    if new.isEmpty():
        return
    overwrite(new.select(*BRONZE_LINE.names, "batch"), store.path(BRONZE_LINE), BRONZE_LINE.partitions)
    files = read.groupBy("source_file", "ingest_id", "file_size", "first_line", "start").agg(
        F.count("*").alias("n_lines")
    )
    files = select_schema(files.where("n_lines > start").withColumns(options.columns()), FILE)
    overwrite(files.withColumn("batch", batch), store.path(FILE), FILE.partitions)


def _damaged_files(spark: SparkSession, store: Store, inputs: Sequence[str]) -> list[str]:
    """Return the new compressed files that cannot be read to their end."""
    new = list_files(spark, inputs).join(store.read(spark, FILE), "source_file", "left_anti")
    packed = new.where(F.col("source_file").rlike(PACKED)).select("source_file").collect()
    return [row.source_file for row in packed if not _is_readable(spark, row.source_file)]


def _is_readable(spark: SparkSession, file: str) -> bool:
    try:
        spark.read.text(file).agg(F.max(F.length("value"))).collect()
    except (PySparkException, Py4JError):
        return False
    return True


def read_parquet(spark: SparkSession, files: Sequence[str]) -> DataFrame:
    """Return the rows of Parquet files, with the columns of silver/event, `source_file` and `ingest_id`."""
    return lines.with_file_columns(spark.read.schema(EVENT.columns).parquet(*files))


def combined_glob(inputs: Iterable[str]) -> str:
    """Combine the inputs into the single pattern that a file stream accepts.

    The pattern begins with the inputs' common prefix, because Spark accepts no path that begins with `{`. Raises
    JobRefused if the inputs are on several file systems.
    """
    inputs = list(inputs)
    if len(inputs) == 1:
        return inputs[0]
    # stop before a brace in an input: the cut must not split it
    prefix = commonprefix(inputs).partition("{")[0]  # noqa: RUF071 - inputs may be URLs; the prefix ends at a slash
    prefix = prefix[: prefix.rfind("/") + 1]
    if not prefix or prefix.endswith("://"):
        raise JobRefused(
            f"--input {', --input '.join(inputs)}: they are on several file systems; load each with its own command"
        )
    return f"{prefix}{{{','.join(path.removeprefix(prefix) for path in inputs)}}}"


def _reader(spark: SparkSession, glob: str) -> DataStreamReader:
    return (
        spark.readStream.option("pathGlobFilter", glob)
        .option("recursiveFileLookup", value=True)
        .option("maxFileAge", MAX_FILE_AGE)
        # after a broken file fails a batch, the user removes it and the batch is read again without it
        .option("ignoreMissingFiles", value=True)
    )


def _run(frame: DataFrame, store: Store, stream: FileStream, write_batch: Callable[[DataFrame, int], None]) -> None:
    query = (
        frame.writeStream.foreachBatch(write_batch)
        .option("checkpointLocation", store.checkpoint(stream.name))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


def _lines_writer(
    line_path: str, file_path: str, options: LogOptions, damaged: Sequence[str]
) -> Callable[[DataFrame, int], None]:
    """Return a function that writes the lines of a batch, and then its files."""

    def write(frame: DataFrame, number: int) -> None:
        batch = F.lit(TEXT.batch(number))
        kept = lines.bronze_lines(frame)
        if damaged:
            files = lines.listed_files(frame.sparkSession.read.format("binaryFile").load([*damaged]))
            kept = kept.where(~F.col("source_file").isin(*damaged)).unionByName(select_schema(files, BRONZE_LINE))
        kept = kept.withColumn("batch", batch)
        overwrite(kept, line_path, BRONZE_LINE.partitions)
        written = frame.sparkSession.read.schema(kept.schema).parquet(line_path).where(F.col("batch") == batch)
        files = select_schema(written.withColumns(options.columns()), FILE)
        overwrite(files.distinct().withColumn("batch", batch), file_path, FILE.partitions)

    return write


def _files_writer(file_path: str, options: LogOptions) -> Callable[[DataFrame, int], None]:
    """Return a function that writes the files of a batch."""

    def write(frame: DataFrame, number: int) -> None:
        batch = F.lit(PARQUET.batch(number))
        files = select_schema(lines.distinct_files(frame).withColumns(options.columns()), FILE)
        overwrite(files.withColumn("batch", batch), file_path, FILE.partitions)

    return write
