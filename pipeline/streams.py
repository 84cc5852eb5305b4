"""The first half of a load: files that have not been read before, by file streams of Spark that end when all is read.

What a stream has read is in its checkpoint. It gives its batches numbers, and gives a batch that was not finished the
same number and the same files again; so what is written here for a batch is written over what a crash has left.
"""

from __future__ import annotations

from dataclasses import dataclass
from os.path import commonprefix
from typing import TYPE_CHECKING, Any

from pyspark import cloudpickle
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from koordinator import pipeline

from .bronze import lines
from .frames import shaped
from .schema import BRONZE_LINE, EVENT, FILE
from .store import overwrite
from .troubles import Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamReader

    from .store import Store

TEXT_FILES = "{*.jsonl,*.jsonl.*,*.json,*.json.*,*.log,*.log.*,*.txt,*.txt.*}"
"""Names of files that are read as lines: rotated and compressed ones are called `server.log.2026-11-21-20.gz`."""

PARQUET_FILES = "*.parquet"

FOR_EVER = "100000d"
"""A file stream forgets files that are a week older than the newest; we want late ones, too."""


@dataclass(frozen=True, slots=True)
class Stream:
    """A kind of files, by its name in the store."""

    name: str
    glob: str

    def batch(self, number: int) -> str:
        """What a batch of it is called in all tables."""
        return f"{self.name}-{number}"


TEXT = Stream("text", TEXT_FILES)
PARQUET = Stream("parquet", PARQUET_FILES)
STREAMS = (TEXT, PARQUET)


def listed(spark: SparkSession, inputs: Sequence[str]) -> DataFrame:
    """The files that are there now: `source_file`, `file_size`."""
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
    """Read the files that are new: the lines into bronze/line, and which files they are into bronze/file."""
    # on a Spark Connect server, what is done with a batch is done there, where our package need not be installed
    pickling: Any = cloudpickle
    pickling.register_pickle_by_value(pipeline)
    place = one_glob(inputs)
    text = lines.picked(_reader(spark, TEXT).text(place))
    _run(text, store, TEXT, _lines_kept(store.path(BRONZE_LINE), store.path(FILE)))
    table = lines.files(_reader(spark, PARQUET).schema(EVENT.columns).parquet(place))
    _run(table, store, PARQUET, _files_kept(store.path(FILE)))


def rows_of(spark: SparkSession, files: Sequence[str]) -> DataFrame:
    """The rows of Parquet files, with the columns of silver/event, `source_file` and `ingest_id`."""
    return lines.rows(spark.read.schema(EVENT.columns).parquet(*files))


def one_glob(inputs: Iterable[str]) -> str:
    """The one pattern that a file stream takes. It begins where all inputs do: one that begins with `{` is no path.

    Raises Refused if they have no file system in common.
    """
    inputs = list(inputs)
    if len(inputs) == 1:
        return inputs[0]
    # before a brace of their own, too: it is not to be cut in two
    begin = commonprefix(inputs).partition("{")[0]  # noqa: RUF071 - URLs, too; and it is cut at a slash
    begin = begin[: begin.rfind("/") + 1]
    if not begin or begin.endswith("://"):
        raise Refused(f"--input {', --input '.join(inputs)}: these are on several file systems; load one after another")
    return f"{begin}{{{','.join(place.removeprefix(begin) for place in inputs)}}}"


def _reader(spark: SparkSession, stream: Stream) -> DataStreamReader:
    return (
        spark.readStream.option("pathGlobFilter", stream.glob)
        .option("recursiveFileLookup", value=True)
        .option("maxFileAge", FOR_EVER)
        # a batch that failed by a broken file is read again without it, once somebody has removed it
        .option("ignoreMissingFiles", value=True)
    )


def _run(frame: DataFrame, store: Store, stream: Stream, keep: Callable[[DataFrame, int], None]) -> None:
    query = (
        frame.writeStream.foreachBatch(keep)
        .option("checkpointLocation", store.checkpoint(stream.name))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


def _lines_kept(line_path: str, file_path: str) -> Callable[[DataFrame, int], None]:
    """Write the lines of a batch, and when they are there, the files."""

    def keep(frame: DataFrame, number: int) -> None:
        batch = F.lit(TEXT.batch(number))
        kept = lines.numbered(frame).withColumn("batch", batch)
        overwrite(kept, line_path, BRONZE_LINE.partitions)
        written = frame.sparkSession.read.schema(kept.schema).parquet(line_path).where(F.col("batch") == batch)
        overwrite(shaped(written, FILE).distinct().withColumn("batch", batch), file_path, FILE.partitions)

    return keep


def _files_kept(file_path: str) -> Callable[[DataFrame, int], None]:
    """Write which files a batch has."""

    def keep(frame: DataFrame, number: int) -> None:
        batch = F.lit(PARQUET.batch(number))
        files = shaped(lines.identified(frame), FILE)
        overwrite(files.withColumn("batch", batch), file_path, FILE.partitions)

    return keep
