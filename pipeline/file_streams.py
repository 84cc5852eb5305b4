"""The first half of a load: Spark file streams that read the files added since the last load, and then end.

The checkpoint of a stream records the files it has read. A stream numbers its batches, and repeats an unfinished batch
with the same number and files. So the writes of a batch replace those of a crashed attempt.
"""

from __future__ import annotations

from dataclasses import dataclass
from os.path import commonprefix
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - its usual name

from .bronze import lines
from .frames import select_schema
from .job_errors import JobRefused
from .schema import BRONZE_LINE, EVENT, FILE
from .store import overwrite

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamReader

    from .store import Store

TEXT_FILES = "{*.jsonl,*.jsonl.*,*.json,*.json.*,*.log,*.log.*,*.txt,*.txt.*}"
"""Names of files that are read as lines, including rotated and compressed ones: `server.log.2026-11-21-20.gz`."""

PARQUET_FILES = "*.parquet"

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


def read_new(spark: SparkSession, store: Store, inputs: Sequence[str]) -> None:
    """Write the lines of new text files to bronze/line, and the names of all new files to bronze/file."""
    pattern = combined_glob(inputs)
    text = lines.select_lines(_reader(spark, TEXT).text(pattern))
    _run(text, store, TEXT, _lines_writer(store.path(BRONZE_LINE), store.path(FILE)))
    table = lines.select_files(_reader(spark, PARQUET).schema(EVENT.columns).parquet(pattern))
    _run(table, store, PARQUET, _files_writer(store.path(FILE)))


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


def _reader(spark: SparkSession, stream: FileStream) -> DataStreamReader:
    return (
        spark.readStream.option("pathGlobFilter", stream.glob)
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


def _lines_writer(line_path: str, file_path: str) -> Callable[[DataFrame, int], None]:
    """Return a function that writes the lines of a batch, and then its files."""

    def write(frame: DataFrame, number: int) -> None:
        batch = F.lit(TEXT.batch(number))
        kept = lines.bronze_lines(frame).withColumn("batch", batch)
        overwrite(kept, line_path, BRONZE_LINE.partitions)
        written = frame.sparkSession.read.schema(kept.schema).parquet(line_path).where(F.col("batch") == batch)
        overwrite(select_schema(written, FILE).distinct().withColumn("batch", batch), file_path, FILE.partitions)

    return write


def _files_writer(file_path: str) -> Callable[[DataFrame, int], None]:
    """Return a function that writes the files of a batch."""

    def write(frame: DataFrame, number: int) -> None:
        batch = F.lit(PARQUET.batch(number))
        files = select_schema(lines.distinct_files(frame), FILE)
        overwrite(files.withColumn("batch", batch), file_path, FILE.partitions)

    return write
